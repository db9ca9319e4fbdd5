package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/secrets"
	"github.com/refold/refold/space"
)

// worker carries out effects. It is all of a bridge but the connection.
type worker struct {
	wire      wire
	instance  string // ULID of this process's start
	by        string // who settles, for people
	log       *slog.Logger
	now       func() time.Time
	holders   *holders
	table     *table
	reader    *reader
	vault     *vault                              // where secrets are
	manifests *cache[codec.Hash, *space.Manifest] // of packs whose tools are called
	stats     counters
	quiet     quiet
	slots     *slots            // that all targets share; nil: each has its own alone
	observer  executor.Observer // nil: nobody asks
}

// counters counts what a bridge did since it started.
type counters struct {
	Started, Settled, Foreign, Conflicts, GivenBack, Deltas atomic.Uint64
	Won, TakenOver, Withdrawn                               atomic.Uint64 // claims
}

func newWorker(w wire, instance, by string, log *slog.Logger) *worker {
	v := &vault{env: noEnvironment, catalog: new(secrets.Catalog)}
	return &worker{
		wire: w, instance: instance, by: by, log: slog.New(v.given.Handler(log.Handler())), now: time.Now,
		vault: v, manifests: newCache[codec.Hash, *space.Manifest](manifestsCacheBytes),
		holders: newHolders(instance, w), table: newTable(), reader: newReader(w),
	}
}

func (w *worker) count(c *atomic.Uint64) { c.Add(1) }

// about returns a logger that names the effect of f in every line.
func (w *worker) about(f *flight) *slog.Logger {
	return w.log.With("session", f.name.Session, "effect", f.name.Effect, "target", f.name.Target)
}

// debugs reports whether anybody wants to know what is said at debug level:
// putting it together costs more than some effects.
func (w *worker) debugs() bool { return w.log.Enabled(context.Background(), slog.LevelDebug) }

// served is one target and what carries its effects out. Exactly one of model,
// executor, hook and spaces is set.
type served struct {
	class       session.Class
	target      string
	concurrency int
	model       executor.Model
	executor    executor.Executor
	hook        executor.StepHook
	spaces      executor.SpaceReader

	pace   *pace         // nil: nothing holds its generations
	counts *targetCounts // nil: nobody counts
	ahead  int           // effects that are pulled and wait their session's turn; 0: none

	priority int     // among targets that share slots
	lost     bool    // it answers for a worker that is gone
	lacks    string  // what people should know; empty: nothing
	wrong    []error // of its options
}

// lifetimes are the stages of a bridge's end: drain ends when no more effects
// are taken, grace when executors must stop, last when nothing more is stored.
type lifetimes struct {
	drain, grace, last context.Context
}

// newLifetimes derives the stages from ctx, whose end begins them. stop ends
// all of them and waits for nothing.
func newLifetimes(ctx context.Context, grace time.Duration) (l lifetimes, stop func()) {
	base := context.WithoutCancel(ctx)
	graceCtx, endGrace := context.WithCancelCause(base)
	lastCtx, endLast := context.WithCancel(base)
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		select {
		case <-ctx.Done():
		case <-done:
			return
		}
		if !pause(done, grace) {
			return
		}
		endGrace(errDraining)
		if pause(done, stopGrace+settleGrace) {
			endLast()
		}
	})
	return lifetimes{drain: ctx, grace: graceCtx, last: lastCtx}, func() {
		close(done)
		ended.Wait()
		endGrace(errDraining)
		endLast()
	}
}

// pause waits for d; false if done came first.
func pause(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-done:
		return false
	}
}

// serve carries out the effects of one target until life.drain ends, and what
// was taken until then to its end. An error means that it could not begin.
func (w *worker) serve(life lifetimes, s served, src source) error {
	ran := make(chan error, 1)
	defer w.heed(life)()
	carry := func(d delivery) { w.take(&life, &s, d) }
	if w.slots != nil {
		carry = w.inSlot(life, s, carry)
	}
	if s.ahead > 0 {
		carry = w.inTurn(life, s, carry)
	}
	go func() { ran <- src.Run(life.last, s.concurrency+s.ahead, carry) }()
	select {
	case err := <-ran:
		return err
	case <-life.drain.Done():
	}
	if err := src.Drain(life.last); err != nil {
		w.log.Warn("not_drained", "class", string(s.class), "target", s.target, "error", err.Error())
	}
	return <-ran
}

// heed ends what runs when the grace time is over, until stop is called.
func (w *worker) heed(life lifetimes) (stop func() bool) {
	return context.AfterFunc(life.grace, func() { w.table.endAll(context.Cause(life.grace)) })
}

// take carries one delivery to its end: its message is acked or given back, and
// it is done. That may be in another goroutine, before take returns.
func (w *worker) take(life *lifetimes, s *served, d delivery) {
	f := w.taken(d)
	if f == nil {
		d.Done()
		return
	}
	f.life, f.served, f.answer, f.began, f.sampled = life, s, d, w.now(), d.Traced()
	s.counts.begin()
	if r := w.carry(f); r.next != nextElsewhere {
		w.land(f, r)
	}
}

// taken returns the flight of a delivery, nil if there is nothing to carry.
func (w *worker) taken(d delivery) *flight {
	var e effect
	name, err := d.Name()
	if err == nil {
		e, err = decodeEffect(name, d.Subject(), d.Payload())
	}
	if errors.Is(err, errNewer) {
		w.count(&w.stats.GivenBack)
		w.log.Warn("newer_effect_given_back", "subject", d.Subject(), "error", err.Error())
		d.GiveBack(newerDelay)
		return nil
	}
	if err != nil {
		// It settles nothing: there is no telling what it would settle.
		w.count(&w.stats.Foreign)
		w.log.Error("foreign_message_skipped", "subject", d.Subject(), "bytes", len(d.Payload()), "error", err.Error())
		d.Ack()
		return nil
	}
	e.incarnation = w.wire.Incarnation()
	f, known := w.table.enter(e)
	switch known {
	case entryBusy: // who carries it answers for it
		w.log.Error("effect_delivered_twice_at_once", "session", e.name.Session, "effect", e.name.Effect)
	case entryReplaces:
		w.count(&w.stats.GivenBack)
		w.log.Warn("effect_replaced", "session", e.name.Session, "effect", e.name.Effect, "note", "the server lost an effect of this name that is in progress here: that is stopped, and says nothing")
		d.GiveBack(heldDelay)
	case entrySettled:
		d.Ack()
	}
	return f
}

// land ends a flight.
func (w *worker) land(f *flight, r ruling) {
	d, s, now := f.answer, f.served, w.now()
	defer d.Done()
	if s.pace != nil {
		s.pace.breaker.leave(f)
		s.pace.health.over(f.digest)
	}
	s.counts.end(&r, now.Sub(f.began))
	w.table.leave(f, r.next == nextAck, now)
	if r.next == nextAck {
		if w.debugs() {
			w.about(f).Debug("effect_acked", "why", r.why)
		}
		d.Ack()
		return
	}
	w.count(&w.stats.GivenBack)
	if w.debugs() {
		w.about(f).Debug("effect_given_back", "why", r.why, "delay_ms", r.delay.Milliseconds())
	}
	d.GiveBack(r.delay)
}

// carry takes a flight from where it is to an ack or back to the stream.
func (w *worker) carry(f *flight) ruling {
	life := f.life
	if life.drain.Err() != nil {
		return giveBack(stoppingDelay, "this bridge is stopping")
	}
	if f.settled != (settledAt{}) {
		if r := w.settledEarlier(life.grace, f); r.next != nextStart {
			return w.end(f, r)
		}
	}
	if f.served.pace != nil {
		if r := w.admit(f); r.next != nextStart {
			return r
		}
	}
	if f.generation != nil {
		return w.end(f, w.turn(f))
	}
	r := ruling{next: nextStart}
	switch {
	case f.claimed():
		r = w.claim(life.grace, f, nil)
	case f.call != nil && f.began.Sub(time.UnixMilli(f.call.At)) > unclaimedFreshFor:
		r = w.stillWanted(life.grace, f)
	}
	if r.next == nextStart {
		r = w.start(f, nil)
	}
	return w.end(f, r)
}

// turn carries out a generation, or says why not. What the model is shown is read
// while the claim is on its way: the turn takes one round trip less so. But where
// the last one could not be read it is read first, as it is at the start: a bridge
// that can read nothing claims no turns then that another one could carry out.
func (w *worker) turn(f *flight) ruling {
	life := f.life
	var request *executor.Request
	var wrong *executor.Error // why no model can ever be asked
	var err error
	read := func() { request, wrong, err = w.reader.request(life.grace, f.generation) }
	beside := read
	if !w.reader.works.Load() && !f.late(w.now()) {
		beside = nil
		if read(); err != nil {
			return w.unread(f, err)
		}
	}
	if r := w.claim(life.grace, f, beside); r.next != nextStart {
		return r
	}
	if request == nil && wrong == nil && err == nil && !f.late(w.now()) {
		return giveBack(troubleDelay, "it was late, and is not any more: the clock was set")
	}
	switch {
	case err != nil:
		return w.unread(f, err)
	case wrong != nil:
		// Only who may start it may say that it failed.
		w.about(f).Error("generation_refused", "code", wrong.Code, "detail", wrong.Detail)
		return settleAs(outcome{status: session.CallFailed, fault: wrong})
	}
	return w.start(f, request)
}

// unread gives back a generation whose transcript could not be read now. If it is
// claimed here it stays so: only this bridge goes on with it then, as long as it
// is heard.
func (w *worker) unread(f *flight, err error) ruling {
	if times, ok := w.quiet.tells("transcript_not_read", w.now()); ok {
		w.about(f).Warn("transcript_not_read", "error", err.Error(), "times", times)
	}
	return giveBack(troubleDelay, "transcript not read")
}

// end stores the settlement that r asks for, if any.
func (w *worker) end(f *flight, r ruling) ruling {
	if r.next != nextSettle {
		return r
	}
	if f.served.lost {
		r.outcome.host = lostHost(f.call) // also where the outcome is unknown
		r.outcome.duration = 0            // nothing ran, and who else answers says the same bytes
	}
	if err := w.settle(f.life.last, f, r.outcome); err != nil {
		return giveBack(stoppingDelay, "settlement not stored: "+err.Error())
	}
	return ruling{next: nextAck, why: "settled", outcome: r.outcome}
}

// settle stores the settlement of a flight. It tries until it is stored: it
// returns an error only when ctx ends. What is stored once may be stored
// again, the fold takes the first.
func (w *worker) settle(ctx context.Context, f *flight, o outcome) error {
	inlineMax, again := inlineBytesMax, ""
	wait := retryWaitMin
	if o.at.IsZero() {
		o.at = w.now()
	}
	for {
		if f.isReplaced() {
			return nil
		}
		s, err := w.encode(ctx, &f.effect, o, inlineMax)
		var seq uint64
		if err == nil {
			seq, err = w.wire.Publish(ctx, s.door, f.name.Session, s.id+again, s.payload)
		}
		if err == nil {
			w.settled(f, seq, &s, &o)
			drafts.Put(s.draft)
			return nil
		}
		var large *natsio.MaxPayloadError
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w (at last: %w)", ctx.Err(), err)
		case errors.Is(err, natsio.ErrClosed):
			return err
		case errors.As(err, &large) && inlineMax > inlineBytesSlim:
			// This server takes less than we may send: texts go to blobs.
			inlineMax = inlineBytesSlim
			continue
		case errors.As(err, &large) && codeOf(o.fault) != codeAnswerTooLarge:
			at := o.at
			o = failed(codeAnswerTooLarge, "the server's max_payload is "+fmt.Sprint(large.Limit)+" bytes: raise it to 1 MiB")
			o.at = at
			continue
		case errors.Is(err, journal.ErrIDTaken):
			// Somebody guessed the id. Another one is as good.
			again = "." + newULID(w.now())
		}
		if times, ok := w.quiet.tells("settlement_not_stored", w.now()); ok {
			w.about(f).Warn("settlement_not_stored", "error", err.Error(), "times", times)
		}
		pause(ctx.Done(), wait)
		wait = min(2*wait, retryWaitMax)
	}
}

// settled notes that the settlement of a flight is stored.
func (w *worker) settled(f *flight, seq uint64, s *settlement, o *outcome) {
	w.count(&w.stats.Settled)
	f.settled.seq = seq
	if w.wire.Incarnation() == f.incarnation { // else another event may have that sequence
		w.reader.keep(f.name.Session, seq, s.body)
	}
	if w.log.Enabled(context.Background(), slog.LevelInfo) { // putting it together costs more than some effects
		w.log.Info("effect_settled", "session", f.name.Session, "effect", f.name.Effect, "target", f.name.Target, "status", string(o.status), "code", codeOf(o.fault))
	}
}
