package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
)

// start starts an execution, unless it is late or withdrawn, and decides what
// follows from its outcome.
func (w *Worker) start(f *execution) decision {
	return w.reportEnd(f, classOps[f.name.Class].start(w, f))
}

// start starts a generation, and again after each retryable failure while there is
// time.
func (generations) start(w *Worker, f *execution) decision {
	request, wait := f.request, modelWaitMin
	for {
		r := w.reportEnd(f, w.startGeneration(f, request))
		if r.next != nextSettle || r.outcome.fault == nil || !r.outcome.fault.Retryable {
			return r
		}
		// Another try may succeed, if it can start before start_by.
		now := w.now()
		pauseFor := f.served.Pace.reserveRetry(f, now, wait/2+rand.N(wait/2+1))
		if f.late(now.Add(pauseFor)) {
			f.served.Pace.forgetTry(f)
			return r
		}
		if !w.waitToRetry(f, pauseFor) {
			if f.isWithdrawn() {
				return settleAs(withdrawnOutcome(f.effect))
			}
			return giveBack(stoppingDelay, "this bridge is stopping")
		}
		w.logFor(f).Warn("generation_started_again", "code", r.outcome.fault.Code, "detail", r.outcome.fault.Detail)
		f.served.Counts.retry()
		wait = min(2*wait, modelWaitMax)
	}
}

// waitToRetry waits before a generation starts again. It returns false if the
// generation is withdrawn or this bridge stops.
func (w *Worker) waitToRetry(f *execution, d time.Duration) bool {
	ctx, cancel := context.WithCancelCause(f.life.Drain)
	defer cancel(nil)
	if f.setStop(cancel) {
		return false
	}
	return pause(ctx.Done(), d)
}

func (calls) start(w *Worker, f *execution) decision {
	c := f.call
	call := executor.Call{
		Session: c.Session, Effect: c.Effect, ToolID: c.ToolID, ToolName: c.ToolName, Arguments: json.RawMessage(c.Arguments),
		ProviderCallID: c.ProviderCallID, IdempotencyKey: c.IdempotencyKey, RetrySafe: c.RetrySafe,
	}
	if h := c.HostSession; h != nil {
		call.HostSession = &executor.HostSession{ID: h.ID, Status: h.Status, Root: h.Root, Route: h.Route}
	}
	for i := range c.Spaces {
		s := &c.Spaces[i]
		call.Spaces = append(call.Spaces, executor.CallSpace{Space: s.Space, Kind: string(s.Kind), Version: s.Version, Source: s.Source, At: s.At, Manifest: codec.Ref{Hash: s.Hash}.String()})
	}
	for i := range c.Grants {
		g := &c.Grants[i]
		call.Grants = append(call.Grants, executor.CallGrant{Space: g.Space, Attach: g.Attach, Sources: g.Sources, Target: g.Target, Trust: g.Trust})
	}
	if len(c.Context) > 0 {
		var err error
		if call.Context, err = codec.ToJSON(c.Context); err != nil {
			return settleAs(outcome{status: session.CallFailed, fault: faultOf(err, codeExecutorError)})
		}
	}
	if refused, ok := w.provideSecrets(f, &call); !ok {
		return refused
	}
	return w.execute(f, func(ctx context.Context, start string, r *returned) {
		if call.Start = start; f.observed != nil {
			call.Traceparent = f.observed.traceparent
		}
		r.result, r.err = f.served.Executor.Execute(ctx, call)
	})
}

func (calls) outcome(_ *Worker, f *execution, r *returned, now time.Time) (outcome, bool) {
	o, again := toolOutcome(f.effect, r, max(0, now.Sub(f.started)))
	return o.redacted(f.secrets.redacts()), again
}

func (w *Worker) startGeneration(f *execution, request *executor.Request) decision {
	f.feedback = &feedback{of: f, now: w.now}
	return w.execute(f, func(ctx context.Context, start string, r *returned) {
		own, live := *request, &f.feedback.deltas
		live.wire, live.sid, live.effect, live.start, live.ctx = w.wire, f.name.Session, f.name.Effect, start, ctx
		live.published = &w.stats.Deltas
		own.Start, own.Feedback = start, f.feedback
		add := live.add
		if own.Compact { // no user asked for it
			add = func(string) {}
		}
		r.answer, r.err = f.served.Model.Generate(ctx, own, w.noteFirst(f, add))
		live.end()
	})
}

func (generations) outcome(_ *Worker, f *execution, r *returned, now time.Time) (outcome, bool) {
	answered := r.panicked == nil && r.err == nil && !r.abandoned
	if answered { // it counts even after the context ended: a generation has no other effect
		r.cause = nil
	}
	o, again := r.outcome(f.effect, "model's executor", codeExecutorPanic, codeModelError)
	switch {
	case answered:
		o.answer = &r.answer
	case r.cause != nil && codeOf(o.fault) == session.CodeDeadlineExceeded:
		o.fault.Detail = "no answer of the model within " + f.runTime.String()
	}
	f.feedback.ended(&o, now)
	return o, again
}

// execute calls run, for at most f.runTime, and decides what follows. run
// receives the start's name, and fills in r. A late or withdrawn execution does
// not start.
func (w *Worker) execute(f *execution, run func(ctx context.Context, start string, r *returned)) decision {
	if r := w.claimAgain(f); r.next != nextStart {
		return r
	}
	ctx := newExecutionContext(w, f)
	defer ctx.release()
	withdrawn := f.setStop(ctx.cancel)
	now := w.now()
	switch {
	case withdrawn:
		ctx.finish()
		return settleAs(withdrawnOutcome(f.effect))
	case f.late(now): // the last look at the clock before the start
		ctx.finish()
		return settleAs(tooLate(f.effect, now))
	case w.wasSilent(f): // it was frozen: another bridge may have answered for it
		ctx.finish()
		return giveBack(aliveEvery, "this bridge was silent")
	case f.life.grace.Err() != nil: // endAll came before setStop
		ctx.cancel(context.Cause(f.life.grace))
	}
	start, r := NewULID(now), new(returned)
	w.reportStart(f, start, now)
	ctx.setStarted(now)
	w.stats.Started.Add(1)
	if !w.run(f, ctx, r, func() { run(ctx.Context, start, r) }) {
		return decision{next: nextHandedOff}
	}
	return w.returned(f, r)
}

// run calls execute, and reports whether the caller continues with f. If not,
// another goroutine has finished f.
func (w *Worker) run(f *execution, ctx *executionContext, r *returned, execute func()) (ours bool) {
	over := false
	r.panicked = errGoexit // until execute returns
	defer func() {
		p := recover()
		if p != nil {
			r.panicked = p
		}
		if r.panicked != nil {
			w.logFor(f).Error("executor_panicked", "panic", fmt.Sprint(r.panicked), "stack", string(debug.Stack()))
		}
		r.cause = ctx.ended()
		switch ours = ctx.finish(); {
		case !ours && (over || p != nil):
			<-ctx.gone // the slot must not be free before
		case ours && !over && p == nil: // this goroutine ends
			left := *r
			go w.continueExecution(f, &left)
		}
	}()
	execute()
	over, r.panicked = true, nil
	return
}

// continueExecution finishes an execution in place of its goroutine, which the
// executor blocks or has ended. It does not start a generation again: an abandoned
// one did not fail with a retryable fault.
func (w *Worker) continueExecution(f *execution, r *returned) {
	end := w.reportEnd(f, w.returned(f, r))
	if f.resume != nil {
		f.resume(end)
		return
	}
	w.finish(f, w.end(f, end))
}

func withdrawnOutcome(e *effect) outcome {
	o := outcome{status: session.CallCancelled, fault: &executor.Error{Code: codeCancelled, Detail: "withdrawn before it started"}}
	if e.call == nil {
		o.status = session.CallFailed
	}
	return o
}
