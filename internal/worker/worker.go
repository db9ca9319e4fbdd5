package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/prompt"
	"github.com/refold/refold/internal/secrets"
	"github.com/refold/refold/space"
)

// Worker executes effects.
type Worker struct {
	wire       Transport
	instance   string // ULID of this process's start
	by         string // the bridge's name in settlements, for people
	log        *slog.Logger
	now        func() time.Time
	detector   *failureDetector
	executions *executions
	reads      atomic.Bool // the latest transcript could be read
	reader     *prompt.Reader
	vault      *vault
	manifests  *prompt.Cache[codec.Hash, *space.Manifest] // of packs whose tools are called
	stats      Counters
	limiter    logLimiter
	neighbours neighbours
	newer      newerEffects
	slots      *slots            // shared by all targets; nil: none
	observer   executor.Observer // nil: none
}

// Counters counts the effects and claims of a bridge since it started.
type Counters struct {
	Started, Settled, Foreign, Conflicts, GivenBack, Deltas atomic.Uint64
	Won, TakenOver, Withdrawn                               atomic.Uint64 // claims
}

// New returns a worker. by names it in settlements, for people; now is the
// server's clock.
func New(w Transport, instance, by string, now func() time.Time, log *slog.Logger) *Worker {
	v := &vault{env: NoEnvironment, catalog: new(secrets.Catalog)}
	return &Worker{
		wire: w, instance: instance, by: by, log: slog.New(v.given.Handler(log.Handler())), now: now,
		vault: v, manifests: prompt.NewCache[codec.Hash, *space.Manifest](manifestsCacheBytes),
		detector: newFailureDetector(instance, w), executions: newExecutions(), reader: prompt.New(w),
	}
}

// OpenVault lets w look up secrets in from, then in the catalog, and read env.
func (w *Worker) OpenVault(env func(string) (string, bool), catalog *secrets.Catalog, from ...secrets.Source) {
	w.vault.env, w.vault.catalog = env, catalog
	w.vault.sources = append(append(w.vault.sources, from...), catalog)
}

// Observe reports every start to o, unless it is nil.
func (w *Worker) Observe(o executor.Observer) { w.observer = o }

// Share lets all targets share n slots.
func (w *Worker) Share(n int) { w.slots = &slots{free: n} }

// Watch checks our own heartbeats until ctx ends.
func (w *Worker) Watch(ctx context.Context) { w.detector.watch(ctx, w.reader.Forget) }

// Caches returns the counts of the caches.
func (w *Worker) Caches() prompt.Counts { return w.reader.Counts() }

// Counts returns the worker's counters.
func (w *Worker) Counts() *Counters { return &w.stats }

// logFor returns a logger that names the effect of f in every line.
func (w *Worker) logFor(f *execution) *slog.Logger {
	return w.log.With("session", f.name.Session, "effect", f.name.Effect, "target", f.name.Target)
}

// Lifetimes are the stages of a bridge's end: when Drain ends, the bridge accepts
// no more effects; when grace ends, executors must stop; when Last ends, nothing
// more is stored.
type Lifetimes struct {
	Drain, grace, Last context.Context
}

// NewLifetimes derives the stages from ctx, whose end begins them. stop ends all of
// them at once.
func NewLifetimes(ctx context.Context, grace time.Duration) (l Lifetimes, stop func()) {
	base := context.WithoutCancel(ctx)
	graceCtx, endGrace := context.WithCancelCause(base)
	lastCtx, endLast := context.WithCancel(base)
	done := make(chan struct{})
	go func() {
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
	}()
	return Lifetimes{Drain: ctx, grace: graceCtx, Last: lastCtx}, func() {
		close(done)
		endGrace(errDraining)
		endLast()
	}
}

// pause waits for d, and returns false if done is closed first.
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

// Serve executes the effects of one target until life.Drain ends, and finishes
// those delivered by then. An error means that it could not begin.
func (w *Worker) Serve(life Lifetimes, s Target, src Source) error {
	ran := make(chan error, 1)
	defer w.stopAfterGrace(life)()
	if s.Ahead > 0 {
		s.turns = &slots{free: s.Concurrency, byTurn: true}
	}
	go func() { ran <- src.Run(life.Last, s.Concurrency+s.Ahead, func(d Delivery) { w.deliver(&life, &s, d) }) }()
	select {
	case err := <-ran:
		return err
	case <-life.Drain.Done():
	}
	if err := src.Drain(life.Last); err != nil {
		w.log.Warn("not_drained", "class", string(s.Class), "target", s.Name, "error", err.Error())
	}
	return <-ran
}

// stopAfterGrace stops all executions when the grace time is over, unless the
// caller calls stop first.
func (w *Worker) stopAfterGrace(life Lifetimes) (stop func() bool) {
	return context.AfterFunc(life.grace, func() { w.executions.endAll(context.Cause(life.grace)) })
}

// deliver processes one delivery: its message is acked or given back, and Done is
// called, perhaps by another goroutine before deliver returns.
func (w *Worker) deliver(life *Lifetimes, s *Target, d Delivery) {
	f := w.accept(d)
	if f == nil {
		d.Done()
		return
	}
	f.life, f.served, f.answer, f.traceparent = life, s, d, d.Traceparent()
	if r := w.process(f); r.next != nextHandedOff {
		w.finish(f, r)
	}
}

// accept returns the execution of a delivery, nil if there is nothing to do.
func (w *Worker) accept(d Delivery) *execution {
	var e *effect
	name, err := d.Name()
	if err == nil {
		e, err = decodeEffect(name, d.Subject(), d.Payload())
	}
	if errors.Is(err, errNewer) {
		w.stats.GivenBack.Add(1)
		w.newer.note(string(name.Class)+"/"+name.Target, w.now())
		w.log.Warn("newer_effect_given_back", "subject", d.Subject(), "error", err.Error())
		d.GiveBack(newerDelay)
		return nil
	}
	if err != nil {
		// It is not settled: its effect is unknown.
		w.stats.Foreign.Add(1)
		w.log.Error("foreign_message_skipped", "subject", d.Subject(), "bytes", len(d.Payload()), "error", err.Error())
		d.Ack()
		return nil
	}
	e.incarnation = w.wire.Incarnation()
	f, known := w.executions.enter(e)
	switch known {
	case entryBusy: // the execution answers for both deliveries
		w.log.Error("effect_delivered_twice_at_once", "session", e.name.Session, "effect", e.name.Effect)
	case entryReplaces:
		w.stats.GivenBack.Add(1)
		w.log.Warn("effect_replaced", "session", e.name.Session, "effect", e.name.Effect, "note", "the server lost an effect of this name that is in progress here: it is stopped, and is not settled")
		d.GiveBack(heldDelay)
	case entrySettled:
		d.Ack()
	}
	return f
}

// finish ends an execution: it acks its delivery or gives it back.
func (w *Worker) finish(f *execution, r decision) {
	d, s, now := f.answer, f.served, w.now()
	defer func() {
		w.leave(f)
		d.Done()
	}()
	s.Counts.end(&r, max(0, now.Sub(f.began)))
	w.executions.leave(f, r.next == nextAck, now)
	if r.next == nextAck {
		if w.logs(slog.LevelDebug) {
			w.logFor(f).Debug("effect_acked", "why", r.why)
		}
		d.Ack()
		return
	}
	w.stats.GivenBack.Add(1)
	w.release(f)
	w.logFor(f).Debug("effect_given_back", "why", r.why, "delay_ms", r.delay.Milliseconds())
	d.GiveBack(r.delay)
}

func (w *Worker) process(f *execution) decision {
	r := w.admit(f)
	switch {
	case r.next != nextStart:
		return w.end(f, r)
	case f.generation != nil:
		return w.end(f, w.turn(f))
	case f.claimed():
		r = w.claim(f.life.grace, f, nil)
	case f.call != nil && f.began.Sub(time.UnixMilli(f.call.At)) > unclaimedFreshFor:
		r = w.stillWanted(f.life.grace, f)
	}
	if r.next == nextStart {
		r = w.start(f)
	}
	return w.end(f, r)
}

// turn executes a generation. It builds the request while the claim is in
// progress, which saves a round trip. If the last request could not be built, or
// none was built yet, it builds the request first: a bridge that can't read the
// log must not claim turns that another one could execute.
func (w *Worker) turn(f *execution) decision {
	life := f.life
	var request *executor.Request
	var wrong *executor.Error // why the request can never be built
	var err error
	read := func() {
		if request, wrong, err = w.reader.Request(life.grace, f.generation); wrong == nil {
			w.reads.Store(err == nil)
		}
	}
	during := read
	if !w.reads.Load() && !f.late(w.now()) {
		during = nil
		if read(); err != nil {
			return w.giveBackUnread(f, err)
		}
	}
	if r := w.claim(life.grace, f, during); r.next != nextStart {
		return r
	}
	if request == nil && wrong == nil && err == nil && !f.late(w.now()) {
		return giveBack(troubleDelay, "it was late and no longer is: the clock was set back")
	}
	switch {
	case err != nil:
		return w.giveBackUnread(f, err)
	case wrong != nil:
		// Only the holder of the claim may settle it as failed.
		w.logFor(f).Error("generation_refused", "code", wrong.Code, "detail", wrong.Detail)
		return settleAs(outcome{status: session.CallFailed, fault: wrong})
	}
	f.request = request
	return w.start(f)
}

// giveBackUnread gives back a generation whose transcript could not be read. If
// this bridge has claimed it, the claim stays: no other bridge continues it while
// our heartbeats arrive.
func (w *Worker) giveBackUnread(f *execution, err error) decision {
	if times, ok := w.limiter.allow("transcript_not_read", w.now()); ok {
		w.logFor(f).Warn("transcript_not_read", "error", err.Error(), "times", times)
	}
	return giveBack(troubleDelay, "transcript not read")
}

// end stores the settlement of a decision to settle; it returns any other decision.
func (w *Worker) end(f *execution, r decision) decision {
	if r.next != nextSettle {
		return r
	}
	if f.served.lost {
		r.outcome.host = lostHost(f.call) // also if the outcome is unknown
		r.outcome.duration = 0            // nothing ran; another bridge settles with the same bytes
	}
	if err := w.settle(f.life.Last, f, r.outcome); err != nil {
		return giveBack(stoppingDelay, "settlement not stored: "+err.Error())
	}
	return decision{next: nextAck, why: "settled", outcome: r.outcome}
}

// settle stores the settlement of an execution. It retries until that succeeds, and
// returns an error only when ctx ends or the connection is closed. It may store a
// settlement twice; the fold applies the first.
func (w *Worker) settle(ctx context.Context, f *execution, o outcome) error {
	inlineMax, again := inlineBytesMax, ""
	wait := retryWaitMin
	if o.at.IsZero() {
		o.at = w.now()
	}
	for {
		if f.isReplaced() {
			return nil
		}
		s, err := w.encode(ctx, f.effect, o, inlineMax)
		var seq uint64
		if err == nil {
			seq, err = w.wire.Publish(ctx, s.door, f.name.Session, s.id+again, s.payload)
		}
		if err == nil {
			w.settled(f, seq, &s, &o)
			return nil
		}
		var large *natsio.MaxPayloadError
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w (at last: %w)", ctx.Err(), err)
		case errors.Is(err, natsio.ErrClosed):
			return err
		case errors.As(err, &large) && inlineMax > inlineBytesSlim:
			// This server's max_payload is below our limit: texts go to blobs.
			inlineMax = inlineBytesSlim
			continue
		case errors.As(err, &large) && codeOf(o.fault) != codeAnswerTooLarge:
			at := o.at
			o = failed(codeAnswerTooLarge, "the server's max_payload is "+fmt.Sprint(large.Limit)+" bytes: raise it to 1 MiB")
			o.at = at
			continue
		case errors.Is(err, journal.ErrIDTaken):
			// Another publisher used the id.
			again = "." + NewULID(w.now())
		}
		if times, ok := w.limiter.allow("settlement_not_stored", w.now()); ok {
			w.logFor(f).Warn("settlement_not_stored", "error", err.Error(), "times", times)
		}
		pause(ctx.Done(), wait)
		wait = min(2*wait, retryWaitMax)
	}
}

func (w *Worker) settled(f *execution, seq uint64, s *settlement, o *outcome) {
	w.stats.Settled.Add(1)
	f.settled.seq = seq
	if w.wire.Incarnation() == f.incarnation { // else another event may have that sequence
		w.reader.Keep(f.name.Session, seq, s.body)
	}
	if w.logs(slog.LevelInfo) {
		w.logFor(f).Info("effect_settled", "status", string(o.status), "code", codeOf(o.fault))
	}
}

// logs reports whether lines of a level are logged: for every effect, their
// attributes cost more than some tools do.
func (w *Worker) logs(level slog.Level) bool { return w.log.Enabled(context.Background(), level) }
