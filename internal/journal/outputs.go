package journal

import (
	"context"
	"errors"
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
