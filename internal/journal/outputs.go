package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	s := storeCall{journal: j, outputs: outputs, errs: make([]error, len(outputs)), failed: map[string]int{}}
	effects := s.begin(ctx, j.effects, (*Output).isEffect)
	events := s.begin(ctx, j.logs, func(o *Output) bool { return o.Event != nil })
	wakes := s.begin(ctx, j.timers, (*Output).isWake)
	if effects.err != nil {
		s.end(effects) // so that no notice of their sessions is sent
	}
	s.needs = s.neededOf(effects)
	notices := s.begin(ctx, j.notices, func(o *Output) bool { return o.Notice != nil })
	s.end(effects)
	s.storeBeside(ctx, effects)
	s.withdrawNext(ctx, effects)
	s.end(notices)
	s.needs = nil
	s.end(s.begin(ctx, j.notices, func(o *Output) bool { return o.held }))
	s.end(events)
	s.end(wakes) // notices don't wait for wakes, only the return does
	return s.errs
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

// isEffect reports whether the output goes to the effects stream: an effect other than
// a wake, or a withdrawal.
func (o *Output) isEffect() bool { return o.Notice == nil && o.Event == nil && !o.isWake() }

type storeCall struct {
	journal *Journal
	outputs []Output
	errs    []error
	failed  map[string]int // index of the first output of a session that failed
	needs   *needed        // the effects for which notices are held back; nil: none
}

// outputGroup has the writes that one committer got.
type outputGroup struct {
	to     *committer
	writes []*write
	of     []int // index of each write's output
	waiter *waiter
	err    error
}

// begin sends the outputs that some selects to a committer.
func (s *storeCall) begin(ctx context.Context, to *committer, some func(*Output) bool) outputGroup {
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
	var next *committer
	if to == s.journal.effects {
		next = s.journal.notices
	}
	g.waiter, g.err = to.beginBefore(ctx, g.writes, next)
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

// storeBeside stores the effects whose names hold those of another system, which has a
// session of this name, under names with the log's identity.
func (s *storeCall) storeBeside(ctx context.Context, g outputGroup) {
	for at, i := range g.of {
		o := &s.outputs[i]
		o.taken = o.Effect != nil && s.errs[i] == nil && g.writes[at].foreign
	}
	s.end(s.begin(ctx, g.to, func(o *Output) bool { return o.taken }))
}

// withdrawNext stores the withdrawals of a group that met claims of other effects, as
// the next claims.
func (s *storeCall) withdrawNext(ctx context.Context, g outputGroup) {
	for n := uint64(2); n <= ClaimsMax; n++ {
		next := map[*Output]bool{}
		for at, i := range g.of {
			o, w := &s.outputs[i], g.writes[at]
			if o.Withdraw != nil && s.errs[i] == nil && w.existing != nil && (w.foreign || WithdrawsNext(o.Withdraw, w.existing)) {
				o.N = max(o.N, 1) + 1
				next[o] = true
			}
		}
		if len(next) == 0 {
			return
		}
		g = s.begin(ctx, g.to, func(o *Output) bool { return next[o] })
		s.end(g)
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
