package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

// A failing load or store keeps back the acknowledgements of its lane. If the server
// is at fault, all sessions fail, and all wait. If only one session fails, it is
// quarantined, and the lane goes on (docs/adr/0075).
const (
	// roundFor is how long failing work is retried before it is compared with the
	// work of other sessions.
	roundFor = 10 * time.Second
	// roundsMax is how many rounds in a row must fail, each while others succeed.
	// Servers that lose their quorum notice it within 20 s.
	roundsMax = 4
	// comparedMax is how many other sessions a failing load is compared with in one
	// round: those of the latest comparedEvents events. Rounds begin at comparedRounds
	// places, so that a few bad sessions don't hide each other.
	comparedMax    = 3
	comparedEvents = 64
	comparedRounds = 4
	// stalledAfter is how long a load may read nothing, and how long one try to store
	// outputs may take. A large snapshot is one read.
	stalledAfter = 30 * time.Second
	// answersWithin is how long the streams may take to answer.
	answersWithin = 5 * time.Second
	// retriedEvery is how often the failed work of a quarantined session is tried
	// again.
	retriedEvery = time.Minute
)

// errNoOthers means that no other session has been compared.
var errNoOthers = errors.New("no other session has read or stored anything on this stream")

// isolation counts the rounds in a row in which one session's work failed while that
// of another one succeeded. The zero value has counted none.
type isolation struct {
	rounds int
	since  time.Time // others must have succeeded since then; zero: at any time
}

// failed counts a round that ended at now with the error cause. others is nil if
// another session succeeded on the same streams, and all streams answer. It reports
// whether the session must be quarantined. A full stream counts against no session,
// since it may still take smaller messages.
func (i *isolation) failed(cause, others error, now time.Time) bool {
	switch {
	case errors.Is(cause, natsio.ErrStreamFull), others != nil && !errors.Is(others, errNoOthers):
		i.rounds, i.since = 0, now
	case others == nil:
		i.rounds++
	}
	return i.rounds >= roundsMax
}

// isolatedError reports that a session's load or store fails while those of others
// succeed. What failed is tried again, and its success ends the quarantine.
type isolatedError struct {
	what  string // that fails
	cause error
}

func (e *isolatedError) Error() string {
	return fmt.Sprintf("%s fails, while other sessions of the same streams succeed; it is tried again every minute, and its success releases the session: %v", e.what, e.cause)
}

func (e *isolatedError) Unwrap() error { return e.cause }

// retryAlone is retry for reads of a session. If they fail while those of other
// sessions succeed, it returns an *isolatedError.
func (o outside) retryAlone(ctx context.Context, what string, e session.Event, try func(ctx context.Context) error) error {
	var alone isolation
	for round := 0; ; round++ {
		failed, err := o.retryRound(ctx, o.host.roundFor, what, e, func() error { return unstalled(ctx, try) })
		switch {
		case !failed:
			return err
		case alone.failed(err, o.host.compare(ctx, e.Session, round), time.Now()):
			return &isolatedError{"its load", err}
		}
	}
}

// errStalled ends a load that reads nothing any more.
var errStalled = fmt.Errorf("nothing was read for %v", stalledAfter)

// progress is the context key of a function that is called for each event that is read.
type progress struct{}

// unstalled calls try with a context that ends when nothing is read for stalledAfter:
// reads are repeated for as long as their context lasts.
func unstalled(ctx context.Context, try func(ctx context.Context) error) error {
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(stalledAfter, func() { cancel(errStalled) })
	defer timer.Stop()
	err := try(context.WithValue(watched, progress{}, func() { timer.Reset(stalledAfter) }))
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(watched), errStalled) {
		return fmt.Errorf("%w: %w", errStalled, err)
	}
	return err
}

// watched is a World whose reads of events report their progress.
type watched struct{ World }

func (w watched) ReadSession(ctx context.Context, sid string, from, to uint64, leader bool) iter.Seq2[session.Event, error] {
	return progressing(ctx, w.World.ReadSession(ctx, sid, from, to, leader))
}

func (w watched) ReadNext(ctx context.Context, sid string, from, to, n uint64) iter.Seq2[session.Event, error] {
	return progressing(ctx, w.World.ReadNext(ctx, sid, from, to, n))
}

func progressing(ctx context.Context, events iter.Seq2[session.Event, error]) iter.Seq2[session.Event, error] {
	report, isWatched := ctx.Value(progress{}).(func())
	if !isWatched {
		return events
	}
	return func(yield func(session.Event, error) bool) {
		for e, err := range events {
			if report(); !yield(e, err) {
				return
			}
		}
	}
}

// compare reads what a load reads, for the sessions of the log's latest events
// except sid, until that succeeds for one. It returns nil if it does and all streams
// answer. Each round begins at an earlier event.
func (h *Host) compare(ctx context.Context, sid string, round int) error {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	last, err := h.world.LastSeq(ctx)
	if err != nil {
		return err
	}
	err = errNoOthers
	read := map[string]bool{sid: true, "": true} // the empty one has the install records
	last -= min(last, uint64(round%comparedRounds*comparedEvents/comparedRounds))
	for seq := last; seq > 0 && last-seq < comparedEvents && len(read) < 2+comparedMax; seq-- {
		e, lookErr := h.world.EventAt(ctx, seq)
		if lookErr != nil || read[e.Session] {
			continue
		}
		read[e.Session] = true
		if err = h.canLoad(ctx, e.Session, seq); err == nil {
			_, err = h.answer(ctx)
			return err
		}
	}
	return err
}

// canLoad reads what a load of a session reads, without folding it. The log has its
// event at seq.
func (h *Host) canLoad(ctx context.Context, sid string, seq uint64) error {
	if _, err := h.stopOf(ctx, sid); err != nil {
		return err
	}
	if _, _, err := h.world.GetSnapshot(ctx, sid); err != nil {
		return err
	}
	for _, err := range h.world.ReadSession(ctx, sid, seq, seq, true) {
		return err
	}
	return nil
}

// answer returns the newest outputs of all streams. It fails unless the leaders of all
// streams answer, and the descriptors of the install record are stored, which every
// session needs.
func (h *Host) answer(ctx context.Context) (newest [3]journal.Newest, err error) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	if newest, err = h.world.NewestOutputs(ctx); err != nil {
		return newest, err
	}
	install, err := h.installs.Known(math.MaxUint64)
	if err != nil {
		return newest, err
	}
	return newest, putDescriptors(ctx, h.world, install.Offered())
}

// outputKind is a stream of outputs, in the order of journal.NewestOutputs.
type outputKind int

const (
	kindEffect outputKind = iota // effects and withdrawals
	kindNotice
	kindWake
	kindBlob // descriptors of registries, and events for other sessions
	kindsMax

	probeSnapshots = 3 // the place of the bucket of snapshots in the results of a probe
)

func kindOf(o *journal.Output) outputKind {
	switch {
	case o.Effect != nil && o.Effect.Class == session.ClassWake:
		return kindWake
	case o.Notice != nil:
		return kindNotice
	case o.Event != nil:
		return kindBlob
	}
	return kindEffect
}

// stick records that an output of a kind was not stored.
func (o *outputs) stick(kind outputKind, err error) {
	o.stuck[kind] = true
	if o.trouble == nil {
		o.trouble = err
	}
}

// successes are the latest two sessions that stored an output of each kind, and when.
type successes [kindsMax][2]struct {
	sid string
	at  time.Time
}

// note records that a session stored an output.
func (s *successes) note(kind outputKind, sid string) {
	k := &s[kind]
	if k[0].sid != sid {
		k[1] = k[0]
	}
	k[0].sid = sid
}

// add adds what was stored by now.
func (s *successes) add(more *successes, now time.Time) {
	for kind := range more {
		for _, one := range slices.Backward(more[kind][:]) {
			if one.sid != "" {
				s.note(outputKind(kind), one.sid)
				s[kind][0].at = now
			}
		}
	}
}

// since reports whether another session than sid has stored an output of the kind at
// the time or later. Few events store descriptors, or have events for other sessions:
// what answer checks must do.
func (s *successes) since(kind outputKind, sid string, at time.Time) bool {
	if kind == kindBlob {
		return true
	}
	return slices.ContainsFunc(s[kind][:], func(one struct {
		sid string
		at  time.Time
	}) bool {
		return one.sid != "" && one.sid != sid && !one.at.Before(at)
	})
}

// note records which sessions stored outputs in a round. After a failed round that
// includes the newest message of each stream, which may come from another lane.
func (l *Lane) note(r *rounds) {
	l.stored.add(&r.stored, l.now)
	if !r.failed {
		return
	}
	for kind := range r.newest {
		if now, was := r.newest[kind], r.former[kind]; was.Seq > 0 && now.Seq > was.Seq && now.Session != "" {
			l.stored.note(outputKind(kind), now.Session)
			l.stored[kind][0].at = l.now
		}
	}
}

// isolate judges the sessions whose outputs a round of a batch did not store. The
// first event of each counts, since later ones wait for it.
func (l *Lane) isolate(b *batch) {
	judged := map[*actor]bool{}
	for _, o := range b.outputs {
		switch {
		case o.actor == nil || o.trouble == nil && !judged[o.actor]:
		case judged[o.actor]:
			if b.fails(o.actor) {
				o.pending, o.cancel, o.registry = nil, nil, nil
			}
		default:
			judged[o.actor] = true
			if o.isAlone(l, &b.rounds) {
				o.failed = &isolatedError{"storing its outputs", o.trouble}
				o.registry = nil
			}
		}
	}
}

// isAlone judges an event whose outputs were not stored in a round.
func (o *outputs) isAlone(l *Lane, r *rounds) bool {
	if o.isolation.since.IsZero() {
		o.isolation.since = r.began
	}
	others := r.err
	for kind, stuck := range o.stuck {
		if others == nil && stuck && !r.took[kind] && !l.stored.since(outputKind(kind), o.actor.sid, o.isolation.since) {
			others = errNoOthers
		}
	}
	return o.isolation.failed(o.trouble, others, l.now)
}
