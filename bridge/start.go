package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/fault"
)

// start starts a flight, unless it is too late or it was withdrawn, and says
// what became of it. request is that of a generation, else nil.
func (w *worker) start(life lifetimes, s served, f *flight, request *Request) ruling {
	switch {
	case f.call != nil:
		return w.startCall(life, s, f)
	case f.step != nil:
		return w.startStep(life, s, f)
	}
	wait := modelWaitMin
	for {
		r := w.startGeneration(life, s, f, request)
		if !retried(r) {
			return r
		}
		// The model may do better next time, and until start_by there is one.
		pauseFor := s.pace.again(request.Model, w.now(), wait/2+rand.N(wait/2+1))
		if f.late(w.now().Add(pauseFor)) {
			return r
		}
		if !w.waitToRetry(life, f, pauseFor) {
			if f.isWithdrawn() {
				return settleAs(withdrawnOutcome(&f.effect))
			}
			return giveBack(stoppingDelay, "this bridge is stopping")
		}
		w.about(f).Warn("generation_started_again", "code", r.outcome.fault.Code, "detail", r.outcome.fault.Detail)
		s.counts.retry()
		wait = min(2*wait, modelWaitMax)
	}
}

// retried reports that a generation failed in a way that may pass.
func retried(r ruling) bool {
	return r.next == nextSettle && r.outcome.fault != nil && r.outcome.fault.Retryable
}

// waitToRetry waits before a generation is started again; false if it is
// withdrawn meanwhile, or this bridge is stopping.
func (w *worker) waitToRetry(life lifetimes, f *flight, d time.Duration) bool {
	ctx, cancel := context.WithCancelCause(life.drain)
	defer cancel(nil)
	if f.startUnder(cancel) {
		return false
	}
	return pause(ctx.Done(), d)
}

// startCall carries out a tool call.
func (w *worker) startCall(life lifetimes, s served, f *flight) ruling {
	c := f.call
	call := Call{
		Session: c.Session, Effect: c.Effect, ToolID: c.ToolID, ToolName: c.ToolName, Arguments: json.RawMessage(c.Arguments),
		ProviderCallID: c.ProviderCallID, IdempotencyKey: c.IdempotencyKey, RetrySafe: c.RetrySafe,
	}
	if h := c.HostSession; h != nil {
		call.HostSession = &HostSession{ID: h.ID, Status: h.Status, Route: h.Route}
	}
	var err error
	if call.Context, err = jsonOf(c.Context); err != nil {
		return settleAs(outcome{status: session.CallFailed, fault: faultOf(err, codeExecutorError)})
	}
	started, executor := w.now(), s.executor // s itself would go to the heap
	r, refused := w.execute(life, f, func(ctx context.Context, start string, r *returned) {
		call.Start = start
		r.result, r.err = executor.Execute(ctx, call)
	})
	if refused != nil {
		return *refused
	}
	took := w.now().Sub(started)
	o, again := toolOutcome(&f.effect, r, took)
	if again {
		return giveBack(stoppingDelay, "this bridge is stopping")
	}
	return settleAs(o)
}

// startGeneration asks the model once.
func (w *worker) startGeneration(life lifetimes, s served, f *flight, request *Request) ruling {
	model, told := s.model, (*starting)(nil) // s itself would go to the heap
	if s.pace != nil {
		told = &starting{pace: s.pace, counts: s.counts}
	}
	r, refused := w.execute(life, f, func(ctx context.Context, start string, r *returned) {
		own := *request
		deltas := &liveDeltas{wire: w.wire, sid: f.name.Session, effect: f.name.Effect, start: start, over: ctx}
		own.Start, own.starting, own.deltas = start, told, deltas
		r.answer, r.err = model.Generate(ctx, own, deltas.say)
		deltas.end()
	})
	if refused != nil {
		return *refused
	}
	o, again := modelOutcome(&f.effect, r)
	told.ended(&o, w.now())
	if again {
		return giveBack(stoppingDelay, "this bridge is stopping")
	}
	return settleAs(o)
}

// execute runs what carries out f, for f.runTime at most, and returns what it
// gave back: run is given the start's name, and fills in what it returns. It
// starts nothing that is late or withdrawn: refused then says what becomes of f.
func (w *worker) execute(life lifetimes, f *flight, run func(context.Context, string, *returned)) (r *returned, refused *ruling) {
	ctx, stop := withRunTime(life.grace, f.runTime)
	defer stop(nil)
	if f.startUnder(stop) {
		end := settleAs(withdrawnOutcome(&f.effect))
		return nil, &end
	}
	done := make(chan *returned, 1)
	now := w.now()
	start := newStart(now)
	if f.late(now) && !fault.On(fault.SecondLookLeftOut) { // the last look at the clock before the start
		end := settleAs(tooLate(&f.effect, now))
		return nil, &end
	}
	w.count(&w.stats.Started)
	w.crew.Go(func() {
		r := &returned{panicked: errGoexit} // until it has returned
		defer func() {
			r.cause = context.Cause(ctx)
			if p := recover(); p != nil {
				r.panicked = p
			}
			if r.panicked != nil {
				w.about(f).Error("executor_panicked", "panic", fmt.Sprint(r.panicked), "stack", string(debug.Stack()))
			}
			done <- r
		}()
		run(ctx, start, r)
		r.panicked = nil
	})
	select {
	case r = <-done:
		return r, nil
	case <-ctx.Done():
	}
	// What it says now is heard; what it does not say in time is given up.
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case r = <-done:
	case <-timer.C:
		r = &returned{abandoned: true, cause: context.Cause(ctx)}
		w.about(f).Error("executor_does_not_return", "waited_ms", stopGrace.Milliseconds())
	}
	return r, nil
}

// withdrawnOutcome is the outcome of what was withdrawn before it started.
func withdrawnOutcome(e *effect) outcome {
	o := outcome{status: session.CallCancelled, fault: &Error{Code: codeCancelled, Detail: "withdrawn before it started"}}
	if e.call == nil {
		o.status = session.CallFailed
	}
	return o
}
