package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
)

// batch is some folded events whose outputs are stored together. Several batches are
// stored concurrently and finish in any order. A session has outputs in one of them
// at a time: they are stored in the order of its events, and a failure stops the
// session as if batches were stored one after another.
type batch struct {
	outside
	rounds
	outputs   []*outputs
	snapshots []*snapshot // of the states after it
	tried     bool        // it was tried to store it
	left      bool        // the first try has left something unstored
	marks     int         // quarantines that are not stored yet
	giveBack  error       // why the lane is given back: memory is ahead of what is stored
}

// dispatch starts the next batch of folded events, unless four are being stored, or
// deliveries are buffered that are better stored with it. From then on the batch
// owns their outputs. It never waits while nothing is being stored.
func (l *Lane) dispatch(more bool) {
	waits := more && l.then == nil && len(l.storing) > 0 && len(l.folded) < batchMax
	if waits || len(l.folded) == 0 || len(l.storing) == batchesMax {
		return
	}
	b := &batch{outside: l.outside, rounds: rounds{began: l.now}}
	if b.outputs, l.folded = l.split(); len(b.outputs) == 0 {
		return
	}
	l.batches++
	for _, o := range b.outputs {
		a := o.actor
		if a == nil {
			continue
		}
		if o.hasOutputs() {
			a.storing = b
		}
		if a.batch != l.batches {
			a.batch = l.batches
			if p := l.dueSnapshot(a); p != nil {
				b.snapshots = append(b.snapshots, p)
			}
		}
	}
	l.storing = append(l.storing, b)
	if slices.ContainsFunc(b.outputs, func(o *outputs) bool { return o.registry != nil }) {
		l.do(b)
	} else {
		l.ready.Sends = append(l.ready.Sends, sending{b})
	}
}

// split splits the folded events into those that may be stored now and those that
// must wait: for a load of their session, for its earlier outputs, or for its
// quarantine.
func (l *Lane) split() (now, wait []*outputs) {
	now = make([]*outputs, 0, len(l.folded))
	for _, o := range l.folded {
		if o.parked || o.actor != nil && (o.actor.storing != nil || o.actor.stopping) {
			wait = append(wait, o)
		} else {
			now = append(now, o)
		}
	}
	return now, wait
}

func (b *batch) String() string { return "stores " + b.outputs[0].arrival.Event.Session }

// sending is the first try to store a batch that has no descriptors to store first: it
// waits for nothing. The batch itself stores what it leaves.
type sending struct{ *batch }

func (s sending) Do(ctx context.Context, report func(Input)) {
	b := s.batch
	b.begin(ctx, b.outside, b.unstored(), func(errs []error) {
		again := append(b.take(errs), b.cancelAll(ctx))
		if b.left = errors.Join(again...) != nil; !b.left {
			b.publishProgress()
		}
		report(b)
	})
}

// Do stores the batch and publishes progress. After a round of retries it reports what
// is not stored.
func (b *batch) Do(ctx context.Context, report func(Input)) {
	last := b.outputs[len(b.outputs)-1].arrival.Event
	b.stored = successes{}
	failed, err := b.retryRound(ctx, b.host.roundFor, "store outputs", last, func() error { return b.store(ctx) })
	b.ended(ctx, b.host, failed, b.outputs)
	if b.giveBack = err; err == nil {
		b.publishProgress()
	}
	report(b)
}

// step applies the result of a batch, whose wakes are stored later. It quarantines
// sessions with outputs that can never be stored, or that fail alone.
func (b *batch) step(l *Lane) {
	l.note(&b.rounds)
	switch {
	case b.left:
		b.left = false
		l.do(b)
		return
	case b.failed:
		l.isolate(b)
		l.do(b)
		return
	case b.giveBack != nil:
		l.fail(b.giveBack)
		return
	}
	// The state of a quarantined session is ahead of what is stored.
	b.snapshots = slices.DeleteFunc(b.snapshots, func(p *snapshot) bool { return b.fails(p.actor) })
	for _, o := range b.outputs {
		if o.failed != nil {
			b.marks++
			o.actor.stopping = true
			l.quarantine(o.arrival.Event, o.failed, b)
		}
	}
	l.finish(b)
}

func (b *batch) events() []*outputs { return b.outputs }

// marked implements storer.
func (b *batch) marked(l *Lane) {
	b.marks--
	l.finish(b)
}

// finish completes a batch once its quarantines are stored.
func (l *Lane) finish(b *batch) {
	if b.marks > 0 {
		return
	}
	l.storing = slices.DeleteFunc(l.storing, func(other *batch) bool { return other == b })
	for _, o := range b.outputs {
		if a := o.actor; a != nil && a.storing == b {
			a.storing = nil
		}
	}
	l.waking = append(l.waking, b)
	l.acknowledgeStored()
}

// store stores the outputs of a batch: first the descriptors of registries, since
// an effect may name one, then all others at once. Called again, it goes on where
// it failed. It is safe to store a part twice: an effect's name takes one message,
// and a notice keeps its number.
func (b *batch) store(ctx context.Context) error {
	var again []error
	held := map[*actor]bool{} // without their descriptors nothing of them may be stored
	for _, o := range b.outputs {
		o.stuck, o.trouble = [kindsMax]bool{}, nil
		// They may have been stored for another session, and lost since.
		if o.registry != nil && !held[o.actor] {
			err := putDescriptors(ctx, b.host.world, o.registry)
			if err != nil {
				again = append(again, err)
				o.stick(kindBlob, err)
				held[o.actor] = true
			} else {
				o.registry = nil
			}
		}
		o.held = o.actor != nil && held[o.actor]
	}
	again = append(again, b.take(b.rounds.send(ctx, b.outside, b.unstored()))...)
	return errors.Join(append(again, b.cancelAll(ctx))...)
}

// unstored returns the outputs that are to be stored.
func (b *batch) unstored() (all []journal.Output) {
	now := b.host.now().UnixMilli()
	for _, o := range b.outputs {
		if o.failed != nil || o.held {
			continue
		}
		o.pending = b.startable(o.pending, now)
		if !b.tried {
			b.host.meters.effects(o.tally, o.pending)
			b.host.meters.effects(o.tally, o.wakes)
		}
		all = append(all, o.pending...)
	}
	b.tried = true
	return all
}

// cancelAll tells bridges to stop working on withdrawn effects of events whose outputs
// are stored.
func (b *batch) cancelAll(ctx context.Context) error {
	var again []error
	for _, o := range b.outputs {
		if len(o.pending) == 0 && !o.held {
			again = append(again, b.cancel(ctx, o))
		}
	}
	return errors.Join(again...)
}

// send stores outputs together, and returns an error for each.
func (o outside) send(ctx context.Context, all []journal.Output) []error {
	if len(all) == 0 {
		return nil
	}
	began := time.Now()
	errs := o.host.world.Store(ctx, all)
	o.host.meters.stored(len(all), time.Since(began), errs)
	return errs
}

// publishProgress publishes the progress of runs, one message for each session,
// since a message costs more than its lines. Nothing waits for it or stores it.
func (b *batch) publishProgress() {
	for _, o := range b.outputs {
		if len(o.progress) > 0 && o.failed == nil {
			o.actor.progress = joined(o.actor.progress, o.progress)
		}
		o.progress = nil
	}
	for _, o := range b.outputs {
		if o.actor == nil || len(o.actor.progress) == 0 {
			continue
		}
		if err := b.host.world.PublishProgress(o.actor.sid, o.actor.progress); err != nil {
			b.log.Warn("progress_not_published", "session", o.actor.sid, "error", err.Error())
		}
		o.actor.progress = nil
	}
}

// take removes the stored outputs, given the error of each output. It returns the
// errors that are worth a retry. After an output that can never be stored, the
// session's later outputs are dropped.
func (b *batch) take(errs []error) (again []error) {
	stopped := map[*actor]bool{}
	for _, o := range b.outputs {
		if o.failed != nil {
			stopped[o.actor] = true
			continue
		}
		if o.held {
			continue
		}
		if stopped[o.actor] {
			errs, o.pending, o.cancel = errs[len(o.pending):], nil, nil
			continue
		}
		left := o.pending[:0]
		for _, one := range o.pending {
			err := errs[0]
			errs = errs[1:]
			if err == nil {
				b.stored.note(kindOf(&one), one.Session)
				continue
			}
			left = append(left, one)
			var violation *journal.ViolationError
			var tooLarge *natsio.MaxPayloadError
			var unreadable *journal.UnreadableError
			switch {
			case o.failed != nil:
			case errors.As(err, &violation), errors.As(err, &tooLarge), errors.As(err, &unreadable):
				o.failed = err
			default:
				again = append(again, err)
				o.stick(kindOf(&one), err)
			}
		}
		o.pending = left
		if o.failed != nil {
			stopped[o.actor] = true
		}
	}
	return again
}

// fails reports whether an output of a session can never be stored.
func (b *batch) fails(a *actor) bool {
	return slices.ContainsFunc(b.outputs, func(o *outputs) bool { return o.actor == a && o.failed != nil })
}

// startable removes the effects that may not be started any more. No effect is
// stored after its start_by: the name may have been stored, settled and forgotten
// since. A removed effect is settled by its wake.
func (b *batch) startable(pending []journal.Output, now int64) []journal.Output {
	kept := pending[:0]
	for _, o := range pending {
		if e := o.Effect; e != nil && e.StartBy < now {
			b.log.Warn("effect not stored: it is past its start_by", "session", o.Session, "effect", e.Name, "late_ms", now-e.StartBy)
			continue
		}
		kept = append(kept, o)
	}
	return kept
}

// cancel is cancelAll for one event.
func (b *batch) cancel(ctx context.Context, o *outputs) error {
	if len(o.cancel) == 0 || o.failed != nil {
		return nil
	}
	body, err := json.Marshal(presence.Cancel{Effects: o.cancel})
	if err != nil {
		return err
	}
	if err := b.host.world.PublishCancel(ctx, o.actor.sid, body); err != nil {
		return err
	}
	o.cancel = nil
	return nil
}
