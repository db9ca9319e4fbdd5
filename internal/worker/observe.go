package worker

import (
	"sync/atomic"
	"time"

	"github.com/refold/refold/bridge/executor"
)

// observed is one start of an execution, as the observer knows it.
type observed struct {
	start       executor.Start
	traceparent string
	ended       atomic.Bool  // the end was reported
	first       atomic.Int64 // when the first text arrived, Unix ns; 0: none yet
}

func (w *Worker) reportStart(f *execution, id string, now time.Time) {
	if w.observer == nil {
		return
	}
	o := &observed{start: executor.Start{
		Class: string(f.name.Class), Target: f.name.Target, Session: f.name.Session, Effect: f.name.Effect,
		ID: id, Bridge: w.instance, At: now, Traceparent: f.traceparent,
	}}
	switch {
	case f.call != nil:
		o.start.ToolID, o.start.ToolName, o.start.CallID = f.call.ToolID, f.call.ToolName, f.call.ProviderCallID
		o.start.Arguments = f.call.Arguments
	case f.generation != nil:
		o.start.Model, o.start.Messages = f.generation.Model, f.request.Messages
	}
	o.traceparent = w.observer.Started(o.start)
	f.observed = o
}

// reportEnd tells the observer the result of the start of f, unless there was
// none or its end was reported. It returns r.
func (w *Worker) reportEnd(f *execution, r decision) decision {
	o := f.observed
	if o == nil || r.next == nextHandedOff || o.ended.Swap(true) {
		return r
	}
	end := executor.End{At: w.now()}
	if r.next == nextSettle {
		end.Status, end.Code = string(r.outcome.status), codeOf(r.outcome.fault)
		end.Text = r.outcome.output
		if a := r.outcome.answer; a != nil {
			end.Usage, end.Model, end.Finish, end.Text, end.Calls = a.Usage, a.Model, a.FinishReason, a.Text, a.Calls
		}
	}
	if first := o.first.Load(); first > 0 {
		end.FirstText = time.Unix(0, first)
	}
	w.observer.Ended(o.start, end)
	return r
}

// noteFirst wraps delta to record when the first text arrives.
func (w *Worker) noteFirst(f *execution, delta func(text string)) func(text string) {
	o := f.observed
	if o == nil {
		return delta
	}
	return func(text string) {
		if o.first.Load() == 0 {
			o.first.CompareAndSwap(0, w.now().UnixNano())
		}
		delta(text)
	}
}
