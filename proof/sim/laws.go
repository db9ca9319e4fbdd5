package sim

// The referee of the simulation. It folds every event when it is stored, so it
// knows which outputs each event requires. It checks everything that is started,
// settled, stored, acknowledged and snapshotted.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/subjects"
)

type referee struct {
	mu sync.Mutex // for calls of processes that time has woken

	j        *jetServer
	install  *session.Install
	sessions map[string]*judged
	names    map[string][]byte   // all that was ever stored in the effects stream, by subject
	former   map[string][]string // hashes of what was stored under a name before, and was lost
	stopped  map[string]bool     // effects that a cancel message named
	starts   map[string][]*started
	looked   map[string]uint64 // last sequence of the log when a bridge read a session's last model event
	gone     map[string]bool   // lost names
	compared map[string]uint64 // sequences of checked states in memory, by process and session
	lossy    bool              // events were lost: names may be from a lost past
}

// judged is what the referee knows of a session.
type judged struct {
	state      *session.State
	events     []session.Event
	owed       []dues
	checked    int // the number of owed whose outputs are stored
	notices    [][]byte
	changes    map[string]bool // notices without a number, and whether they are stored
	latest     []byte          // notice
	lastNotice uint64
	lost       bool   // some of its events were lost
	hash       string // of the state at hashed
	hashed     uint64
}

// dues are the outputs that one event requires.
type dues struct {
	seq       uint64
	effects   []session.Effect
	withdrawn []session.Withdrawal
	notices   uint64 // the session's number of notices after it
	change    string // the notice without a number; empty: none
}

// started is one start of an effect.
type started struct {
	by       *proc
	answered bool // the executor returned while its worker still waited
	over     bool // it returned
}

func newReferee(j *jetServer) *referee {
	return &referee{j: j, sessions: map[string]*judged{}, names: map[string][]byte{}, former: map[string][]string{}, stopped: map[string]bool{}, starts: map[string][]*started{}, looked: map[string]uint64{}, gone: map[string]bool{}, compared: map[string]uint64{}}
}

func (r *referee) of(sid string) *judged {
	if r.sessions[sid] == nil {
		r.sessions[sid] = &judged{state: session.New(r.install, sid), changes: map[string]bool{}}
	}
	return r.sessions[sid]
}

// event folds a stored event.
func (r *referee) event(e session.Event) {
	s := r.of(e.Session)
	was := map[string]bool{}
	for _, effect := range s.state.Open() {
		was[effect.Name] = true
	}
	notices, rejected := s.state.Evolve(e)
	s.events = append(s.events, e)
	change := ""
	for _, n := range notices {
		if s.latest = n.JSON(); n.N == 0 {
			change = string(s.latest)
			s.changes[change] = false
		} else {
			s.notices = append(s.notices, s.latest)
		}
	}
	s.owed = append(s.owed, dues{
		e.Seq, s.state.OpenExcept(func(p session.Place) bool { return was[p.String()] }), slices.Clone(s.state.Withdrawals()), uint64(s.state.NoticeN), change,
	})
	r.j.say("  %d: %s %s %s (%v)", e.Seq, e.Session, e.Door, textOf(e.Payload), rejected)
}

// lose removes the events from a sequence on from the histories.
func (r *referee) lose(from uint64) {
	r.lossy = true
	for _, sid := range sortedKeys(r.sessions) {
		old := r.sessions[sid]
		if len(old.events) == 0 || old.events[len(old.events)-1].Seq < from {
			continue
		}
		r.sessions[sid] = &judged{state: session.New(r.install, sid), changes: map[string]bool{}, lost: true}
		for _, e := range old.events {
			if e.Seq < from {
				r.event(e)
			}
		}
	}
}

// stored records the message that was stored under a name.
func (r *referee) stored(subject string, data []byte) {
	former, again := r.names[subject]
	if again && !bytes.Equal(former, data) {
		r.former[subject] = append(r.former[subject], codec.Sum(former).String())
	}
	r.names[subject] = data // an earlier message has expired, or was lost
	name, err := r.j.names.ParseEffect(subject)
	if err == nil && again && r.lossy {
		delete(r.starts, name.Session+"."+name.Effect) // they belong to a lost past
	}
	if err == nil {
		r.asked(name.Session, name.Effect, subject)
	}
}

// scheduled records a stored wake.
func (r *referee) scheduled(o *journal.Output, subject string) {
	r.names[subject] = o.Effect.Payload
	r.asked(o.Session, o.Effect.Name, subject)
}

// asked checks that an event opened an effect.
func (r *referee) asked(sid, effect, subject string) {
	if s := r.of(sid); !s.lost && !slices.ContainsFunc(s.owed, func(d dues) bool {
		return slices.ContainsFunc(d.effects, func(e session.Effect) bool { return e.Name == effect })
	}) {
		r.j.breaks("%s is stored, and no event of %s opens it", subject, sid)
	}
}

// missing returns the outputs of a session up to a sequence that are not stored.
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
		subject, data := r.j.outputOf(&journal.Output{Session: sid, Effect: &e})
		switch held, ok := r.names[subject]; {
		case !ok && (e.Class == session.ClassWake || e.StartBy >= r.j.play.newest().UnixMilli()):
			missing = append(missing, e.Name)
		case ok && !bytes.Equal(held, data):
			missing = append(missing, e.Name+" has other bytes")
		}
	}
	for _, w := range d.withdrawn {
		if w.Claimed && !r.decided(sid, w) {
			missing = append(missing, "the withdrawal of "+w.Name)
		}
		if !r.stopped[sid+"."+w.Name] {
			missing = append(missing, "the cancel of "+w.Name)
		}
	}
	if s.lastNotice < d.notices {
		missing = append(missing, fmt.Sprintf("notice %d", d.notices))
	}
	if d.change != "" && !s.changes[d.change] {
		missing = append(missing, "notice "+d.change)
	}
	return missing
}

// decided reports whether a stored claim says who may start a withdrawn effect: a
// bridge that had claimed it before, or nobody.
func (r *referee) decided(sid string, w session.Withdrawal) bool {
	of := subjects.EffectName{Class: w.Class, Target: w.Target, Session: sid, Effect: w.Name}
	for n := 1; ; n++ {
		held, ok := r.claim(of, n)
		if !ok {
			return false
		}
		body, err := journal.ParseClaimBody(held)
		if err != nil || body.Hash == "" || body.Hash == w.Hash.String() {
			return true
		}
	}
}

// claim returns the nth claim of an effect that was stored.
func (r *referee) claim(of subjects.EffectName, n int) (held []byte, ok bool) {
	subject, err := r.j.names.Claim(subjects.ClaimName{EffectName: of, N: n})
	if err != nil {
		panic(err)
	}
	held, ok = r.names[subject]
	return held, ok
}

// acked checks an event that a host acknowledges.
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
		r.j.breaks("%s acknowledges %s at %d, and these outputs are not stored: %v", p.name, e.Session, e.Seq, missing)
	}
}

// ackedLost checks an event of a session that lost some. Its names may be taken
// by a lost past, and then it is quarantined.
func (r *referee) ackedLost(p *proc, s *judged, e session.Event) {
	i := slices.IndexFunc(s.owed, func(d dues) bool { return d.seq == e.Seq })
	if i < 0 {
		return
	}
	for _, effect := range s.owed[i].effects {
		subject, data := r.j.outputOf(&journal.Output{Session: e.Session, Effect: &effect})
		asked := effect.Class == session.ClassWake || effect.StartBy >= r.j.play.newest().UnixMilli() // late effects are not published
		if held, ok := r.names[subject]; ok && asked && !bytes.Equal(held, data) {
			r.j.breaks("%s acknowledges %s at %d, and %s has other bytes", p.name, e.Session, e.Seq, effect.Name)
		}
	}
	for _, w := range s.owed[i].withdrawn {
		if w.Claimed && !r.decided(e.Session, w) {
			r.j.breaks("%s acknowledges %s at %d, and %s is not withdrawn", p.name, e.Session, e.Seq, w.Name)
		}
	}
}

// snapshot checks a snapshot before it is stored.
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
		return // it belongs to a lost past
	}
	if missing := r.missing(sid, seq); len(missing) > 0 && !s.lost {
		r.j.breaks("%s is snapshotted at %d, and these outputs are not stored: %v", sid, seq, missing)
	}
	state := session.New(r.install, sid)
	for _, e := range s.events {
		if e.Seq <= seq {
			_, _ = state.Evolve(e)
		}
	}
	if snap.Hash != state.Hash() {
		r.j.breaks("the snapshot of %s at %d differs from the fold of its events", sid, seq)
	}
}

// notice checks a stored notice.
func (r *referee) notice(sid string, n uint64, data []byte) {
	s := r.of(sid)
	switch {
	case s.lost:
		return
	case n == 0:
		if _, ok := s.changes[string(data)]; !ok && bytes.Contains(data, []byte(session.NoticeSessionChanged)) {
			r.j.breaks("%s: no event has the notice %s", sid, data)
		}
		s.changes[string(data)] = true
		return
	}
	for _, typ := range []string{spaces.NoticeWorkspaceApplied, spaces.NoticeWorkspaceFailed, spaces.NoticeWorkspaceGone} {
		if n > s.lastNotice && bytes.Contains(data, []byte(typ)) {
			r.j.did(typ)
		}
	}
	if n > s.lastNotice && bytes.Contains(data, []byte(`"kind":"pack"`)) {
		for what, marks := range packNotices {
			if bytes.Contains(data, []byte(marks)) {
				r.j.did(what)
			}
		}
	}
	if n > s.lastNotice+1 {
		r.j.breaks("%s: notice %d is stored after %d", sid, n, s.lastNotice)
	}
	s.lastNotice = max(s.lastNotice, n)
	if n > uint64(len(s.notices)) || !bytes.Equal(s.notices[n-1], data) {
		r.j.breaks("%s: notice %d differs from the fold's", sid, n)
	}
}

// packNotices are what to count in notices about packs.
var packNotices = map[string]string{
	"pack applied": spaces.NoticeWorkspaceApplied, "pack gone": spaces.NoticeWorkspaceGone, "pack refused": spaces.CodeWorkspaceUntrusted,
}

// packTool counts the start of a pack's tool.
func (r *referee) packTool() {
	r.j.meet()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.j.did("tool of a pack started")
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
	if r.j.mayStop(sid) {
		r.j.did("quarantined for a failure")
		return
	}
	if !r.of(sid).lost {
		r.j.breaks("%s is quarantined: %s", sid, body)
	}
}

// end checks what is left when all is calm.
func (r *referee) end() {
	for _, l := range r.j.lanes {
		if info := l.consumer.Info(); info.AckPending > 0 || info.Pending > 0 {
			r.j.breaks("lane %d is not done: %d to deliver, %d unacked, of %d", l.number, info.Pending, info.AckPending, r.j.log.LastSeq())
		}
	}
	if len(r.j.broken) == 0 {
		r.endMemory()
	}
	for _, sid := range sortedKeys(r.sessions) {
		s := r.sessions[sid]
		if s.lost {
			continue
		}
		if r.j.stops[sid] != nil {
			r.j.breaks("%s is still quarantined in the end", sid)
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
		if s.state.Run != nil && !r.waitsForStopped(s.state) {
			r.j.breaks("%s: run %d has not ended", sid, s.state.Run.Number)
		}
		if len(r.j.broken) == 0 && len(s.events) > 0 {
			r.endView(sid, s)
			r.endNotices(sid, s)
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
