package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/nats-io/nuid"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// Output is one message that the owner of a session stores: an effect, the
// withdrawal of one, notices, or an event for another session. Exactly one of the four
// is set. An effect of class wake is stored as a message schedule.
type Output struct {
	Session  string
	Effect   *session.Effect
	Withdraw *session.Withdrawal // an effect whose claim is stored as withdrawn
	Notice   []byte              // notices about one event, as lines of JSON
	Event    *session.Message    // an event for another session, of the door child
	ID       string              // of the event; the same event has the same id
	N        uint64              // number of the last of them; 0: it has none. Of a withdrawal: the claim to store, as Store raises it; 0: the first

	Awaited     bool   // of a wake: a caller waits for it, so it is stored as soon as possible
	TraceParent string // header of an effect; empty: none. Owners may differ in it

	taken bool // the effect's name holds one of another system
	held  bool // the notices were held back, since an effect of the session was not stored at once
}

// Store stores outputs, and returns the error of each, nil if it is stored.
//
// An effect's name holds one message. Storing the same effect again does nothing;
// other bytes under the name are a *ViolationError. A wake replaces an earlier one of
// its name and time; a wake that has fired fires again. A withdrawal after a bridge's
// claim does nothing and is no error. A claim of another effect, which had the name
// before, is skipped: the withdrawal is stored as the next claim.
//
// Events for other sessions are stored in the order of the outputs. One may be stored
// twice, which does no harm.
//
// The notices of a session are stored in order, after its effects and withdrawals, and
// not after an output of the session that failed. So a notice never mentions an effect
// that is not stored.
//
// A payload that is too large is a *MaxPayloadError. A name that is taken but
// unreadable is an *UnreadableError. If ctx ends first, errors wrap ErrUnknownOutcome;
// storing everything again is safe.
func (j *Journal) Store(ctx context.Context, outputs []Output) []error {
	stored := make(chan []error, 1)
	j.BeginStore(ctx, outputs, func(errs []error) { stored <- errs })
	return <-stored
}

// BeginStore is Store that does not wait: it calls then once, with the errors that Store
// returns, from the goroutine of a committer or its own. then must not block. The outputs
// must not be used before.
func (j *Journal) BeginStore(ctx context.Context, outputs []Output, then func(errs []error)) {
	s := &storeCall{journal: j, ctx: ctx, outputs: outputs, errs: make([]error, len(outputs)), failed: map[string]int{}, then: then, open: groupsMax + 1}
	s.beginFrom(groupEffects, false)
}

// Newest is the newest message in a stream of outputs.
type Newest struct {
	Seq     uint64 // 0: there was none yet
	Session string // whose output it is; empty: the message is gone, or no output
}

// NewestOutputs returns the newest message of the streams of effects, notices and
// timers, in this order. It fails if the leader of one of these streams, or of the
// log, the snapshots or the blobs, does not answer.
func (j *Journal) NewestOutputs(ctx context.Context) (newest [3]Newest, err error) {
	n := j.names
	for i, stream := range []string{n.EffectsStream(), n.NoticesStream(), n.TimersStream(), n.LogStream(), n.SnapshotsStream(), n.BlobsStream()} {
		state, err := j.state(ctx, stream, "")
		if err != nil {
			return newest, err
		}
		if i >= len(newest) || state.LastSeq == 0 {
			continue
		}
		newest[i].Seq = state.LastSeq
		m, err := j.leaderGet(ctx, stream, getRequest{Seq: state.LastSeq})
		switch {
		case err == nil && j.conn.IsForeign(m.header):
		case err == nil:
			newest[i].Session = j.sessionOf(m.subject)
		case !errors.Is(err, natsio.ErrNotFound):
			return newest, err
		}
	}
	return newest, nil
}

// probeTTL is how long the stream of timers keeps a probe: no consumer takes it.
const probeTTL = "1m"

// Probe stores a message of no session in each stream of outputs, in the order of
// NewestOutputs and in the same way as outputs, and in the bucket of snapshots. It
// returns the error of each.
func (j *Journal) Probe(ctx context.Context) (errs [4]error) {
	subjectOf := j.names.Probes(nuid.Next())
	var probes sync.WaitGroup
	for i, to := range []*committer{j.effects, j.notices, j.timers} {
		w := &write{subject: subjectOf[i], data: []byte("{}"), awaited: true}
		if to == j.timers {
			w.headers = []string{subjects.HeaderTTL, probeTTL}
		}
		probes.Go(func() { errs[i] = to.commitOne(ctx, w) })
	}
	_, errs[3] = j.putKey(ctx, subjects.ProbeKey, []byte("{}"))
	probes.Wait()
	return errs
}

// sessionOf returns the session of an output's subject, empty if it is none.
func (j *Journal) sessionOf(subject string) string {
	if name, err := j.names.ParseEffect(subject); err == nil {
		return name.Session
	}
	if name, err := j.names.ParseClaim(subject); err == nil {
		return name.Session
	}
	if sid, err := j.names.ParseOut(subject); err == nil {
		return sid
	}
	sid, _ := j.names.ParseTimer(subject)
	return sid
}

// isWake reports whether the output is a message schedule.
func (o *Output) isWake() bool { return o.Effect != nil && o.Effect.Class == session.ClassWake }

// isEvent reports whether the output is an event for another session.
func (o *Output) isEvent() bool { return o.Event != nil }

// isNotice reports whether the output is notices.
func (o *Output) isNotice() bool { return o.Notice != nil }

// isEffect reports whether the output goes to the effects stream: an effect other than
// a wake, or a withdrawal.
func (o *Output) isEffect() bool { return o.Notice == nil && o.Event == nil && !o.isWake() }

// Groups of outputs, in the order in which they are sent: notices come after the effects
// for which they are held back.
const (
	groupEffects = iota
	groupEvents
	groupWakes
	groupNotices
	groupsMax
)

type storeCall struct {
	journal *Journal
	ctx     context.Context
	outputs []Output
	errs    []error
	failed  map[string]int // index of the first output of a session that failed
	needs   *needed        // the effects for which notices are held back; nil: none
	groups  [groupsMax]outputGroup
	then    func(errs []error)

	mu   sync.Mutex
	open int           // groups without outcomes, and one while groups are begun
	over bool          // it ends, or has ended
	stop []func() bool // ends what waits for the end of ctx and of the committers
}

// outputGroup has the writes that one committer got.
type outputGroup struct {
	to     *committer
	writes []*write
	of     []int // index of each write's output
	waiter *waiter
	err    error
}

// beginFrom sends the n-th group and those after it. Unless it may wait, a goroutine goes
// on with the first one for which a committer has no room.
func (s *storeCall) beginFrom(n int, mayWait bool) {
	j := s.journal
	for ; n < groupsMax; n++ {
		some, to := (*Output).isEffect, j.effects
		switch n {
		case groupEvents:
			some, to = (*Output).isEvent, j.logs
		case groupWakes:
			some, to = (*Output).isWake, j.timers
		case groupNotices:
			some, to = (*Output).isNotice, j.notices
			if effects := s.groups[groupEffects]; effects.err != nil {
				s.end(effects) // so that no notice of their sessions is sent
			} else {
				s.needs = s.neededOf(effects)
			}
		}
		if !mayWait && to.isCrowded() {
			go s.beginFrom(n, true)
			return
		}
		s.groups[n] = s.begin(to, some, s.ended)
		if s.groups[n].waiter == nil {
			s.ended()
		}
	}
	s.mu.Lock()
	s.stop = append(s.stop, context.AfterFunc(s.ctx, func() { s.giveUp(fmt.Errorf("%w: %w", ErrUnknownOutcome, s.ctx.Err())) }))
	for _, g := range s.groups {
		if g.waiter != nil {
			s.stop = append(s.stop, context.AfterFunc(g.to.ended, func() { s.giveUp(natsio.ErrClosed) }))
		}
	}
	s.mu.Unlock()
	s.ended()
}

// ended counts a group that has its outcomes. After the last one it finishes.
func (s *storeCall) ended() {
	s.mu.Lock()
	s.open--
	finish := s.open == 0 && !s.over
	s.over = s.over || finish
	s.mu.Unlock()
	if finish {
		s.finish()
	}
}

// giveUp finishes without the outcomes that are not known yet.
func (s *storeCall) giveUp(err error) {
	s.mu.Lock()
	was := s.over
	s.over = true
	s.mu.Unlock()
	if was {
		return
	}
	for n := range s.groups {
		if g := &s.groups[n]; g.waiter != nil && !g.waiter.hasEnded() {
			g.err = err
		}
	}
	s.finish()
}

// finish records the errors and reports them, unless some outputs must be stored after
// others: then a goroutine does both.
func (s *storeCall) finish() {
	for _, stop := range s.stop {
		stop()
	}
	for _, n := range []int{groupEffects, groupNotices, groupEvents, groupWakes} {
		s.end(s.groups[n])
	}
	effects := s.groups[groupEffects]
	s.take(effects)
	next := s.nextOf(effects)
	if len(next) == 0 && !slices.ContainsFunc(s.outputs, func(o Output) bool { return o.taken || o.held }) {
		s.then(s.errs)
		return
	}
	go func() {
		s.needs = nil
		// Names that hold effects of another system, which has a session of this name.
		s.end(s.begin(s.journal.effects, func(o *Output) bool { return o.taken }, nil))
		s.withdrawNext(next)
		s.end(s.begin(s.journal.notices, func(o *Output) bool { return o.held }, nil))
		s.then(s.errs)
	}()
}

// begin sends the outputs that some selects to a committer. then is called when all have
// their outcomes; nil: nothing is.
func (s *storeCall) begin(to *committer, some func(*Output) bool, then func()) outputGroup {
	g := outputGroup{to: to}
	for i := range s.outputs {
		o := &s.outputs[i]
		if !some(o) {
			continue
		}
		o.held = false
		if first, failed := s.failed[o.Session]; o.Notice != nil && failed && first < i {
			s.errs[i] = errOrder
			continue
		}
		w, err := s.journal.writeOf(o)
		if err != nil {
			s.fail(i, err)
			continue
		}
		if o.Notice != nil {
			w.needs = s.needs
		}
		g.writes, g.of = append(g.writes, w), append(g.of, i)
	}
	var before *committer
	if to == s.journal.effects {
		before = s.journal.notices
	}
	g.waiter, g.err = to.beginBefore(s.ctx, g.writes, before, then)
	return g
}

// neededOf returns the effects that must be stored before the notices of their sessions.
// The committer of notices holds these back, and refuses those of a session with an
// effect that was not stored at once: that may be stored yet.
func (s *storeCall) neededOf(effects outputGroup) *needed {
	if effects.waiter == nil {
		return nil
	}
	of := make([]string, len(effects.of)) // the caller may change its outputs once ctx has ended
	for at, i := range effects.of {
		of[at] = s.outputs[i].Session
	}
	unstored := sync.OnceValue(func() map[string]bool {
		sessions := map[string]bool{}
		for at, w := range effects.writes {
			if w.err != nil || w.foreign || w.existing != nil && !bytes.Equal(w.existing, w.data) {
				sessions[of[at]] = true
			}
		}
		return sessions
	})
	return &needed{effects.waiter, func(session string) bool { return !unstored()[session] }}
}

// end waits for a group and records its errors.
func (s *storeCall) end(g outputGroup) {
	if g.err == nil {
		g.err = g.to.wait(g.waiter)
	}
	for at, i := range g.of {
		w, err := g.writes[at], g.err
		if s.outputs[i].held = err == nil && errors.Is(w.err, errHeld); s.outputs[i].held {
			continue
		}
		if err == nil {
			err = outcomeOf(&s.outputs[i], w)
		}
		if err != nil {
			s.fail(i, fmt.Errorf("store %s: %w", w.subject, err))
		}
	}
}

// take marks the effects whose names hold those of another system, which has a session of
// this name: they are stored under names with the log's identity.
func (s *storeCall) take(g outputGroup) {
	for at, i := range g.of {
		o := &s.outputs[i]
		o.taken = o.Effect != nil && s.errs[i] == nil && g.writes[at].foreign
	}
}

// nextOf returns the withdrawals of a group that met claims of other effects, to be stored
// as the next claims.
func (s *storeCall) nextOf(g outputGroup) map[*Output]bool {
	var next map[*Output]bool
	for at, i := range g.of {
		o := &s.outputs[i]
		if o.Withdraw == nil || s.errs[i] != nil || max(o.N, 1) == ClaimsMax {
			continue
		}
		if w := g.writes[at]; w.existing != nil && (w.foreign || WithdrawsNext(o.Withdraw, w.existing)) {
			o.N = max(o.N, 1) + 1
			if next == nil {
				next = map[*Output]bool{}
			}
			next[o] = true
		}
	}
	return next
}

// withdrawNext stores withdrawals until none meets a claim of another effect.
func (s *storeCall) withdrawNext(next map[*Output]bool) {
	for len(next) > 0 {
		g := s.begin(s.journal.effects, func(o *Output) bool { return next[o] }, nil)
		s.end(g)
		next = s.nextOf(g)
	}
}

func (s *storeCall) fail(i int, err error) {
	s.errs[i] = err
	if first, known := s.failed[s.outputs[i].Session]; !known || i < first {
		s.failed[s.outputs[i].Session] = i
	}
}

func (j *Journal) writeOf(o *Output) (*write, error) {
	switch {
	case o.isWake():
		w, err := j.wakeWrite(o.Session, o.Effect)
		if err == nil {
			w.awaited = o.Awaited
		}
		return w, err
	case o.Effect != nil:
		return j.effectWrite(o)
	case o.Withdraw != nil:
		w := o.Withdraw
		name := subjects.EffectName{Class: w.Class, Target: w.Target, Session: o.Session, Effect: w.Name}
		return j.claimWrite(subjects.ClaimName{EffectName: name, N: max(int(o.N), 1)}, Withdrawn(w))
	case o.Event != nil:
		return j.eventWrite(o)
	default:
		return j.noticeWrite(o.Session, o.N, o.Notice)
	}
}

// eventWrite returns the write of an event for another session. The events of one
// session are stored in order. The server drops one that it has stored lately.
func (j *Journal) eventWrite(o *Output) (*write, error) {
	subject, err := j.names.Log(session.DoorChild, o.Event.Session)
	if err != nil {
		return nil, err
	}
	w := &write{subject: subject, data: o.Event.Payload, order: o.Session, headers: []string{
		subjects.HeaderMsgID, subjects.EventID(o.Event.Session, o.ID), subjects.HeaderContentType, subjects.ContentTypeMsgpack,
	}}
	return w, j.check(w, session.EventBytesMax)
}

// outcomeOf returns the error of an output whose write has an outcome.
func outcomeOf(o *Output, w *write) error {
	var unreadable *UnreadableError
	if o.Withdraw != nil && errors.As(w.err, &unreadable) {
		return nil // it is claimed
	}
	if w.err != nil {
		return w.err
	}
	if o.Effect != nil && w.foreign && !o.taken {
		return nil // storeBeside stores it
	}
	if o.Effect != nil && w.existing != nil && !bytes.Equal(w.existing, w.data) {
		return &ViolationError{Subject: w.subject, Stored: w.existing, Wanted: w.data}
	}
	return nil
}
