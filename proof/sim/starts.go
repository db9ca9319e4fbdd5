package sim

// Rules about what bridges start, settle and ack.

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/subjects"
)

// asked is the content of an effect's message.
type asked struct {
	startBy   time.Time
	retrySafe bool
	forCall   bool // it is a sync that a model's call waits for
	hash      string
}

// readAsked decodes the message of an effect.
func readAsked(payload []byte) (a asked, err error) {
	var fields codec.Pairs
	if err := codec.Unmarshal(payload, &fields); err != nil {
		return a, err
	}
	for _, f := range fields {
		switch f.Key {
		case "call":
			a.forCall = true
		case "retry_safe":
			err = errors.Join(err, codec.Unmarshal(f.Value, &a.retrySafe))
		case "start_by":
			var ms int64
			err = errors.Join(err, codec.Unmarshal(f.Value, &ms))
			a.startBy = time.UnixMilli(ms)
		}
	}
	a.hash = codec.Sum(payload).String()
	return a, err
}

// start checks an effect that a bridge starts.
func (r *referee) start(p *proc, of subjects.EffectName) *started {
	r.j.meet()
	r.mu.Lock()
	defer r.mu.Unlock()
	subject, err := r.j.names.Effect(of)
	if err != nil {
		panic(err)
	}
	one := &started{by: p}
	e, err := readAsked(r.names[subject])
	if err != nil {
		r.j.breaks("%s starts %s, which was never stored: %v", p.name, subject, err)
		return one
	}
	name := of.Session + "." + of.Effect
	before := r.starts[name]
	r.starts[name] = append(before, one)
	switch {
	case len(before) > 0:
		r.j.did("started again")
	case of.Class == session.ClassLLM:
		r.j.did("model started")
	case of.Class == session.ClassSpace && e.forCall:
		r.j.did("pack asked for by a model")
	case of.Class == session.ClassSpace:
		r.j.did("space read")
	default:
		r.j.did("tool started")
	}
	if p.now().After(e.startBy) {
		r.j.breaks("%s starts %s past its start_by", p.name, name)
	}
	r.clocksLate(p, name, e.startBy)
	if died := killedBy(before); len(died) >= deathsMost && r.j.play.remembers() {
		r.j.breaks("%s starts %s, of which %d processes died: %v", p.name, name, len(died), died)
	}
	if r.claimGone(of) || r.claimsFormer(p, of, subject, e) {
		return one // which bridge may start it is unknown, or it starts one that was lost
	}
	switch {
	case of.Class == session.ClassTool && !e.retrySafe:
		if len(before) > 0 {
			r.j.breaks("%s starts %s, which %s has started before", p.name, name, before[0].by.name)
		}
		if !r.of(of.Session).lost && r.settled(of.Session, of.Effect) {
			r.j.breaks("%s starts %s, which others have settled: it may not run twice", p.name, name)
		}
		r.startClaimed(p, of, e, before)
	case of.Class == session.ClassLLM:
		r.startClaimed(p, of, e, before)
	}
	return one
}

// startClaimed checks the start of an effect that needs a claim.
func (r *referee) startClaimed(p *proc, of subjects.EffectName, e asked, before []*started) {
	name := of.Session + "." + of.Effect
	for _, b := range before {
		if b.by != p && !b.answered && b.by.steady() && p.steady() {
			r.j.breaks("%s starts %s, which %s still runs, with heartbeats", p.name, name, b.by.name)
		}
	}
	mine := r.claimOf(p, of, e)
	if mine > 1 {
		r.j.did("model taken over")
	}
	// A bridge that takes a turn over first checks that it is not settled. A
	// settlement between the check and the claim means that the turn is paid
	// twice.
	seen, looked := r.looked[p.name+" "+of.Session]
	if !looked || mine <= 1 {
		seen = r.j.log.LastSeq()
	}
	again := len(before) > 0 && of.Class == session.ClassLLM && !r.of(of.Session).lost
	if again && r.settledBy(of.Session, of.Effect, seen) {
		r.j.breaks("%s starts %s, which is settled: it is paid twice", p.name, name)
	}
	switch {
	case mine == 0:
		r.j.breaks("%s starts %s, which it has not claimed", p.name, name)
	case of.Class == session.ClassLLM:
		for _, b := range before {
			if b.by == p && !b.answered {
				r.j.breaks("%s starts %s a second time while it runs", p.name, name)
			}
		}
	}
}

// claimOf returns the number of a bridge's last claim of an effect; 0: none.
func (r *referee) claimOf(p *proc, of subjects.EffectName, e asked) (mine int) {
	for n := 1; ; n++ {
		held, ok := r.claim(of, n)
		if !ok {
			return mine
		}
		body, err := journal.ParseClaimBody(held)
		switch {
		case err != nil, body.Hash != "" && body.Hash != e.hash, body.Released:
		case body.Withdrawn:
			r.j.breaks("%s starts %s.%s, which is withdrawn", p.name, of.Session, of.Effect)
		case body.By == p.name:
			mine = n
		}
	}
}

// claimsFormer reports whether a bridge has claimed an effect that had the name before,
// and not the present one: it was delivered before the loss.
func (r *referee) claimsFormer(p *proc, of subjects.EffectName, subject string, e asked) (former bool) {
	for n := 1; ; n++ {
		held, ok := r.claim(of, n)
		if !ok {
			return former
		}
		switch body, err := journal.ParseClaimBody(held); {
		case err != nil || body.By != p.name:
		case body.Hash == e.hash:
			return false
		default:
			former = former || slices.Contains(r.former[subject], body.Hash)
		}
	}
}

// deathsMost is how many processes may die of an effect.
const deathsMost = 3

// killedBy returns the processes that were killed after they started an effect.
func killedBy(starts []*started) (names []string) {
	for _, s := range starts {
		if s.by.killed && !s.answered && !slices.Contains(names, s.by.name) {
			names = append(names, s.by.name)
		}
	}
	return names
}

// callOf returns the name of a call of the tool.
func callOf(name string) subjects.EffectName {
	sid, effect, _ := strings.Cut(name, ".")
	return subjects.EffectName{Class: session.ClassTool, Target: "x", Session: sid, Effect: effect}
}

// dies checks what a process takes along that dies of an effect.
func (r *referee) dies(p *proc, name string) {
	r.j.meet()
	r.mu.Lock()
	defer r.mu.Unlock()
	died := slices.DeleteFunc(killedBy(r.starts[name]), func(name string) bool { return name == p.name }) // it may just have been killed otherwise
	if len(died) == 0 || !r.j.play.remembers() {
		return
	}
	r.j.did("killer apart")
	for _, other := range sortedKeys(r.starts) {
		unsafe := false
		if subject, err := r.j.names.Effect(callOf(other)); err == nil {
			_, asked := r.names[subject]
			unsafe = asked && !r.isSafe(callOf(other))
		}
		beside := slices.ContainsFunc(r.starts[other], func(s *started) bool { return s.by == p && !s.over })
		if other != name && beside && (unsafe || len(died) >= deathsMost-1) {
			r.j.breaks("%s dies of %s, as %v did, and takes %s along", p.name, name, died, other)
		}
	}
}

// over records that an executor returned.
func (r *referee) over(one *started) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one.over = true
}

// lostBridges checks that an effect that fails with bridge_lost has claims of
// enough other processes, none of which is well.
func (r *referee) lostBridges(p *proc, sid, name string) {
	r.j.did("bridge_lost")
	var died []string
	for n := 1; ; n++ {
		held, ok := r.claim(callOf(sid+"."+name), n)
		if !ok {
			break
		}
		body, err := journal.ParseClaimBody(held)
		if err == nil && body.By != "" && body.By != p.name && !body.Released && !slices.Contains(died, body.By) {
			died = append(died, body.By)
		}
	}
	for _, by := range died {
		if b := r.j.alive[by]; b != nil && b.steady() && p.steady() {
			r.j.breaks("%s settles %s.%s as bridge_lost, and %s is well", p.name, sid, name, by)
		}
	}
	if len(died) < deathsMost-1 { // the first start has no claim
		r.j.breaks("%s settles %s.%s as bridge_lost after the claims of %v", p.name, sid, name, died)
	}
}

// answer records that an executor returned while its worker still waited.
func (r *referee) answer(one *started) {
	r.j.meet()
	r.mu.Lock()
	defer r.mu.Unlock()
	one.answered = true
}

// settled reports whether the log has a settlement of an effect.
func (r *referee) settled(sid, name string) bool { return r.settledBy(sid, name, r.j.log.LastSeq()) }

// settledBy reports whether the log had one at a sequence.
func (r *referee) settledBy(sid, name string, seq uint64) bool {
	return slices.ContainsFunc(r.of(sid).events, func(e session.Event) bool {
		if e.Seq > seq {
			return false
		}
		switch e.Door {
		case session.DoorLLM, session.DoorTool, session.DoorStep, session.DoorSpace:
			_, of, _, err := settlementOf(e.Payload)
			return err == nil && of == name
		}
		return false
	})
}

// settlementOf returns an event's type, and its effect and status, or "".
func settlementOf(payload []byte) (typ, effect, status string, err error) {
	env, err := session.ReadEnvelope(payload)
	if err != nil {
		return "", "", "", err
	}
	var fields codec.Pairs
	_ = codec.Unmarshal(env.Data, &fields)
	for _, f := range fields {
		switch f.Key {
		case "effect":
			_ = codec.Unmarshal(f.Value, &effect)
		case "status":
			_ = codec.Unmarshal(f.Value, &status)
		}
	}
	return env.Type, effect, status, nil
}

// settles checks a settlement that a bridge sends.
func (r *referee) settles(p *proc, door session.Door, sid string, payload []byte) {
	if door != session.DoorTool {
		return
	}
	_, name, status, _ := settlementOf(payload)
	if bytes.Contains(payload, []byte("no bridge started it by")) {
		// A settlement of a lost effect has another start_by.
		if subject, err := r.j.names.Effect(callOf(sid + "." + name)); err == nil && len(r.former[subject]) == 0 {
			if e, err := readAsked(r.names[subject]); err == nil {
				r.clocksEarly(p, sid+"."+name, e.startBy)
			}
		}
	}
	if bytes.Contains(payload, []byte("bridge_lost")) {
		r.lostBridges(p, sid, name)
		return
	}
	if status == string(session.CallUnknown) {
		r.j.did("outcome_unknown")
		for _, b := range r.starts[sid+"."+name] {
			if b.by != p && !b.answered && b.by.steady() && p.steady() {
				r.j.breaks("%s settles %s.%s as unknown, which %s still runs, with heartbeats", p.name, sid, name, b.by.name)
			}
		}
	}
	i := slices.IndexFunc(r.starts[sid+"."+name], func(s *started) bool { return !s.answered })
	of := subjects.EffectName{Class: session.ClassTool, Target: "x", Session: sid, Effect: name}
	if i >= 0 && !r.isSafe(of) && !r.claimGone(of) && !r.hasFormer(of) && status != string(session.CallUnknown) {
		r.j.breaks("%s settles %s.%s %s, although its outcome is unknown", p.name, sid, name, status)
	}
}

// hasFormer reports whether a lost effect had the same name: a bridge may still run
// that one.
func (r *referee) hasFormer(of subjects.EffectName) bool {
	subject, err := r.j.names.Effect(of)
	if err != nil {
		panic(err)
	}
	return len(r.former[subject]) > 0
}

// isSafe reports whether a stored call may run twice.
func (r *referee) isSafe(of subjects.EffectName) bool {
	subject, err := r.j.names.Effect(of)
	if err != nil {
		panic(err)
	}
	asked, err := readAsked(r.names[subject])
	return err == nil && asked.retrySafe
}

// claimGone reports whether a claim of an effect was lost.
func (r *referee) claimGone(of subjects.EffectName) bool {
	for n := 1; n <= 3; n++ {
		subject, err := r.j.names.Claim(subjects.ClaimName{EffectName: of, N: n})
		if err != nil {
			panic(err)
		}
		if r.gone[subject] {
			return true
		}
	}
	return false
}

// wakes checks a settled wake.
func (r *referee) wakes(p *proc, sid string, payload []byte) {
	r.j.did("wake settled")
	_, name, _, _ := settlementOf(payload)
	now := r.j.play.newest().UnixMilli() // by its clock or by the server's
	for _, e := range r.of(sid).state.Open() {
		// A lost event may have had the latest time of the server's clock.
		if e.Name == name && e.Deadline > now && !r.lossy {
			r.j.breaks("%s settles %s of %s %d ms before it is due", p.name, name, sid, e.Deadline-time.Now().UnixMilli())
		}
	}
}

// done checks an effect that a bridge acks.
func (r *referee) done(p *proc, sid, name string) {
	r.j.meet()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.of(sid)
	if s.lost || r.settled(sid, name) {
		return
	}
	for _, e := range s.state.Open() {
		if e.Name != name {
			continue
		}
		held, _ := r.claim(subjects.EffectName{Class: e.Class, Target: e.Target, Session: sid, Effect: name}, 1)
		if body, err := journal.ParseClaimBody(held); err != nil || !body.Withdrawn {
			r.j.breaks("%s acks %s.%s, which is open and not settled", p.name, sid, name)
		}
	}
}
