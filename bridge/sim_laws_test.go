package bridge

// The referee of the simulation: it folds every event when it is stored, so it
// knows what each one owes, and looks at all that is started, settled, stored,
// acknowledged and snapshotted.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/subjects"
)

type referee struct {
	mu sync.Mutex // of what processes tell when time has woken them

	j        *jetServer
	install  *session.Install
	sessions map[string]*judged
	names    map[string][]byte // all that was ever stored in the effects stream, by subject
	stopped  map[string]bool   // effects that a cancel message named
	starts   map[string][]*started
	looked   map[string]uint64 // where the log was when a bridge looked at a session's last model event
	lossy    bool              // events were lost: names may have been asked by a past that is gone
}

// judged is a session.
type judged struct {
	state   *session.State
	events  []session.Event
	owed    []dues
	checked int // of owed, so many are stored
	notices [][]byte
	said    uint64
	lost    bool // events of it were lost
}

// dues are what one event owes.
type dues struct {
	seq       uint64
	effects   []session.Effect
	withdrawn []session.Withdrawal
	notices   uint64 // the session's number after it
}

// started is one start of an effect.
type started struct {
	by       *proc
	answered bool // the executor returned while it was listened to
}

func newReferee(j *jetServer) *referee {
	return &referee{j: j, sessions: map[string]*judged{}, names: map[string][]byte{}, stopped: map[string]bool{}, starts: map[string][]*started{}, looked: map[string]uint64{}}
}

func (r *referee) of(sid string) *judged {
	if r.sessions[sid] == nil {
		r.sessions[sid] = &judged{state: session.New(r.install, sid)}
	}
	return r.sessions[sid]
}

// event folds an event that was stored.
func (r *referee) event(e session.Event) {
	s := r.of(e.Session)
	was := map[string]bool{}
	for _, effect := range s.state.Open() {
		was[effect.Name] = true
	}
	notices, rejected := s.state.Evolve(e)
	s.events = append(s.events, e)
	for _, n := range notices {
		s.notices = append(s.notices, n.JSON())
	}
	s.owed = append(s.owed, dues{
		e.Seq, s.state.OpenExcept(func(name string) bool { return was[name] }), slices.Clone(s.state.Withdrawals()), s.state.NoticeN,
	})
	r.j.say("  %d: %s %s %s (%v)", e.Seq, e.Session, e.Door, textOf(e.Payload), rejected)
}

// lose takes the events from a sequence on out of the histories.
func (r *referee) lose(from uint64) {
	r.lossy = true
	for _, sid := range sortedKeys(r.sessions) {
		old := r.sessions[sid]
		if len(old.events) == 0 || old.events[len(old.events)-1].Seq < from {
			continue
		}
		r.sessions[sid] = &judged{state: session.New(r.install, sid), lost: true}
		for _, e := range old.events {
			if e.Seq < from {
				r.event(e)
			}
		}
	}
}

// stored takes note of what was stored under a name.
func (r *referee) stored(subject string, data []byte) {
	if _, ok := r.names[subject]; !ok {
		r.names[subject] = data
	}
}

// missing returns what of a session's outputs up to a sequence is not stored.
func (r *referee) missing(sid string, to uint64) (missing []string) {
	s := r.of(sid)
	for s.checked < len(s.owed) && s.owed[s.checked].seq <= to {
		if missing = r.unstored(sid, s, s.owed[s.checked]); len(missing) > 0 {
			return missing
		}
		s.checked++
	}
	return nil
}

func (r *referee) unstored(sid string, s *judged, d dues) (missing []string) {
	for _, e := range d.effects {
		subject, data := r.j.outputOf(&bus.Output{Session: sid, Effect: &e})
		switch held, ok := r.names[subject]; {
		case !ok && (e.Class == session.ClassWake || e.StartBy >= time.Now().UnixMilli()):
			missing = append(missing, e.Name)
		case ok && !bytes.Equal(held, data):
			missing = append(missing, e.Name+" has other bytes")
		}
	}
	for _, w := range d.withdrawn {
		subject, _ := r.j.outputOf(&bus.Output{Session: sid, Withdraw: w.Name})
		if _, ok := r.names[subject]; w.Claimed && !ok {
			missing = append(missing, "the withdrawal of "+w.Name)
		}
		if !r.stopped[sid+"."+w.Name] {
			missing = append(missing, "the cancel of "+w.Name)
		}
	}
	if s.said < d.notices {
		missing = append(missing, fmt.Sprintf("notice %d", d.notices))
	}
	return missing
}

// acked looks at an event that a host acknowledges.
func (r *referee) acked(p *proc, e session.Event) {
	r.j.meet()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.of(e.Session)
	if r.j.stops[e.Session] != nil {
		return
	}
	if s.lost {
		r.ackedLost(p, s, e)
		return
	}
	if missing := r.missing(e.Session, e.Seq); len(missing) > 0 {
		r.j.breaks("%s acknowledges %s at %d, and this is not stored: %v", p.name, e.Session, e.Seq, missing)
	}
}

// ackedLost looks at an event of a session that lost some: its names may have been
// asked by the past that is gone, and then it stops.
func (r *referee) ackedLost(p *proc, s *judged, e session.Event) {
	i := slices.IndexFunc(s.owed, func(d dues) bool { return d.seq == e.Seq })
	if i < 0 {
		return
	}
	for _, effect := range s.owed[i].effects {
		subject, data := r.j.outputOf(&bus.Output{Session: e.Session, Effect: &effect})
		asked := effect.Class == session.ClassWake || effect.StartBy >= time.Now().UnixMilli() // what is late is not asked
		if held, ok := r.names[subject]; ok && asked && !bytes.Equal(held, data) {
			r.j.breaks("%s acknowledges %s at %d, and %s has other bytes", p.name, e.Session, e.Seq, effect.Name)
		}
	}
}

// snapshot looks at a snapshot that is to be stored.
func (r *referee) snapshot(sid string, seq uint64, data []byte) {
	r.j.meet()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.of(sid)
	snap, err := session.ParseSnapshot(data)
	if err != nil {
		r.j.breaks("the snapshot of %s at %d can't be read: %v", sid, seq, err)
		return
	}
	if s.lost && !slices.ContainsFunc(s.events, func(e session.Event) bool { return e.Seq == seq && session.LeafOf(e) == snap.Leaf }) {
		return // it is of the past that is gone
	}
	if missing := r.missing(sid, seq); len(missing) > 0 && !s.lost {
		r.j.breaks("%s is snapshotted at %d, and this is not stored: %v", sid, seq, missing)
	}
	state := session.New(r.install, sid)
	for _, e := range s.events {
		if e.Seq <= seq {
			_, _ = state.Evolve(e)
		}
	}
	if snap.Hash != state.Hash() {
		r.j.breaks("the snapshot of %s at %d is not what its events fold to", sid, seq)
	}
}

// notice looks at a notice that was stored.
func (r *referee) notice(sid string, n uint64, data []byte) {
	s := r.of(sid)
	if s.lost || n == 0 || n <= s.said {
		return
	}
	if n != s.said+1 {
		r.j.breaks("%s: notice %d is stored after %d", sid, n, s.said)
	}
	s.said = n
	if n > uint64(len(s.notices)) || !bytes.Equal(s.notices[n-1], data) {
		r.j.breaks("%s: notice %d says something else than the fold", sid, n)
	}
}

func (r *referee) cancel(sid string, payload []byte) {
	var body struct{ Effects []string }
	if err := json.Unmarshal(payload, &body); err != nil || len(body.Effects) == 0 {
		r.j.breaks("a cancel of %s says %q", sid, payload)
	}
	for _, name := range body.Effects {
		r.stopped[sid+"."+name] = true
	}
}

func (r *referee) quarantine(sid string, body []byte) {
	r.j.did("quarantined")
	if !r.lossy {
		r.j.breaks("%s is quarantined: %s", sid, body)
	}
}

// start looks at an effect that a bridge starts.
func (r *referee) start(p *proc, instance string, of subjects.EffectName) *started {
	r.j.meet()
	r.mu.Lock()
	defer r.mu.Unlock()
	subject, err := r.j.names.Effect(of)
	if err != nil {
		panic(err)
	}
	e, err := decodeEffect(r.j.names, subject, r.names[subject])
	if err != nil {
		r.j.breaks("%s starts %s, which was never asked: %v", p.name, subject, err)
		return &started{by: p}
	}
	name := e.key()
	one := &started{by: p}
	before := r.starts[name]
	r.starts[name] = append(before, one)
	switch {
	case len(before) > 0:
		r.j.did("started again")
	case e.generation != nil:
		r.j.did("model started")
	default:
		r.j.did("tool started")
	}
	if e.late(p.now()) {
		r.j.breaks("%s starts %s past its start_by", p.name, name)
	}
	if len(before) > 0 && e.call != nil && !e.call.RetrySafe {
		r.j.breaks("%s starts %s, which %s has started before", p.name, name, before[0].by.name)
	}
	if !e.claimed {
		return one
	}
	for _, b := range before {
		if b.by != p && !b.answered && b.by.steady() && p.steady() {
			r.j.breaks("%s starts %s, which %s runs, whom everybody hears", p.name, name, b.by.name)
		}
	}
	mine := 0
	for n := 1; ; n++ {
		subject, err := r.j.names.Claim(subjects.ClaimName{Session: e.name.Session, Effect: e.name.Effect, N: n})
		if err != nil {
			panic(err)
		}
		held, ok := r.names[subject]
		if !ok {
			break
		}
		body, err := bus.ParseClaimBody(held)
		switch {
		case err != nil:
		case body.Withdrawn:
			r.j.breaks("%s starts %s, which is withdrawn", p.name, name)
		case body.By == instance:
			mine = n
		}
	}
	if mine > 1 {
		r.j.did("model taken over")
	}
	// Who takes a turn over looks first, and what is settled between the look and
	// the claim is paid twice.
	seen, looked := r.looked[p.name+" "+e.name.Session]
	if !looked || mine <= 1 {
		seen = r.j.log.LastSeq()
	}
	if len(before) > 0 && e.generation != nil && r.settledBy(e.name.Session, e.name.Effect, seen) && !r.of(e.name.Session).lost {
		r.j.breaks("%s starts %s, which is settled: it is paid twice", p.name, name)
	}
	switch {
	case mine == 0:
		r.j.breaks("%s starts %s, which it has not claimed", p.name, name)
	case e.generation != nil:
		for _, b := range before {
			if b.by == p && !b.answered {
				r.j.breaks("%s starts %s a second time while it runs", p.name, name)
			}
		}
	}
	return one
}

// answer notes that an executor returned while it was listened to.
func (r *referee) answer(one *started) {
	r.j.meet()
	r.mu.Lock()
	defer r.mu.Unlock()
	one.answered = true
}

// settled reports whether the log has a settlement of an effect.
func (r *referee) settled(sid, name string) bool { return r.settledBy(sid, name, r.j.log.LastSeq()) }

// settledBy reports whether it had one at a sequence.
func (r *referee) settledBy(sid, name string, seq uint64) bool {
	return slices.ContainsFunc(r.of(sid).events, func(e session.Event) bool {
		if e.Seq > seq {
			return false
		}
		switch e.Door {
		case session.DoorLLM, session.DoorTool, session.DoorStep:
			of, _ := settledOf(e.Payload)
			return of == name
		}
		return false
	})
}

// settledOf returns what a settlement is about, and its status.
func settledOf(payload []byte) (name, status string) {
	env, err := envelopeOf(session.Event{Payload: payload})
	var fields codec.Pairs
	if err != nil || codec.Unmarshal(env.Data, &fields) != nil {
		return "", ""
	}
	for _, f := range fields {
		var text string
		switch f.Key {
		case "effect":
			_ = codec.Unmarshal(f.Value, &name)
		case "status":
			if codec.Unmarshal(f.Value, &text) == nil {
				status = text
			}
		}
	}
	return name, status
}

// settles looks at a settlement that a bridge sends.
func (r *referee) settles(p *proc, door session.Door, sid string, payload []byte) {
	name, status := settledOf(payload)
	switch door {
	case session.DoorWake:
		r.wakes(p, sid, payload)
	case session.DoorTool:
		if status == string(session.CallUnknown) {
			r.j.did("outcome_unknown")
			for _, b := range r.starts[sid+"."+name] {
				if b.by != p && !b.answered && b.by.steady() && p.steady() {
					r.j.breaks("%s says that nobody knows of %s.%s, which %s runs, whom everybody hears", p.name, sid, name, b.by.name)
				}
			}
		}
		i := slices.IndexFunc(r.starts[sid+"."+name], func(s *started) bool { return !s.answered })
		if i >= 0 && strings.HasPrefix(r.toolOf(sid, name), "x.write") && status != string(session.CallUnknown) {
			r.j.breaks("%s settles %s.%s %s, and nobody knows what became of it", p.name, sid, name, status)
		}
	}
}

// toolOf returns the tool of a call that was asked.
func (r *referee) toolOf(sid, name string) string {
	subject, err := r.j.names.Effect(subjects.EffectName{Class: session.ClassTool, Target: "x", Session: sid, Effect: name})
	if err != nil {
		panic(err)
	}
	var c session.ToolCall
	_ = codec.Unmarshal(r.names[subject], &c)
	return c.ToolID
}

// wakes looks at a wake that is settled.
func (r *referee) wakes(p *proc, sid string, payload []byte) {
	r.j.did("wake settled")
	name, _ := settledOf(payload)
	now := time.Now().Add(max(p.skew, 0)).UnixMilli() // by its clock or by the server's
	for _, e := range r.of(sid).state.Open() {
		if e.Name == name && e.Deadline > now && !r.lossy {
			r.j.breaks("%s settles %s of %s %d ms before it is due", p.name, name, sid, e.Deadline-time.Now().UnixMilli())
		}
	}
}

// done looks at an effect that a bridge acks.
func (r *referee) done(p *proc, sid, name string) {
	r.j.meet()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.of(sid)
	if s.lost || r.settled(sid, name) || r.lossy {
		return
	}
	for _, e := range s.state.Open() {
		if e.Name != name {
			continue
		}
		subject, err := r.j.names.Claim(subjects.ClaimName{Session: sid, Effect: name, N: 1})
		if err != nil {
			panic(err)
		}
		body, err := bus.ParseClaimBody(r.names[subject])
		if e.Class != session.ClassWake && (err != nil || !body.Withdrawn) {
			r.j.breaks("%s acks %s.%s, which is open and not settled", p.name, sid, name)
		}
	}
}

// end looks at what is left when all is calm.
func (r *referee) end() {
	info := r.j.lane.Info()
	if info.AckPending > 0 || info.Pending > 0 {
		r.j.breaks("the lane is not done: %d to come, %d unacked, of %d", info.Pending, info.AckPending, r.j.log.LastSeq())
	}
	for _, sid := range sortedKeys(r.sessions) {
		s := r.sessions[sid]
		if r.j.stops[sid] != nil || s.lost && r.lossy {
			continue
		}
		if missing := r.missing(sid, r.j.log.LastSeq()); len(missing) > 0 {
			r.j.breaks("%s: not stored in the end: %v", sid, missing)
		}
		var open []string
		for _, e := range s.state.Open() {
			if e.Class != session.ClassWake || e.Deadline < time.Now().Add(-30*time.Second).UnixMilli() {
				open = append(open, e.Name)
			}
		}
		if len(open) > 0 {
			r.j.breaks("%s: still open in the end: %v", sid, open)
		}
		if s.state.Run != nil {
			r.j.breaks("%s: run %d has not ended", sid, s.state.Run.Number)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
