package worker

import (
	"sync/atomic"
	"time"

	"github.com/refold/refold/bridge/executor"
)

// observed is the start that an execution's executor runs under.
type observed struct {
	start       executor.Start
	traceparent string
	ended       atomic.Bool  // the observer was told
	first       atomic.Int64 // when the first words came, Unix ns; 0: none yet
}

// begins tells the observer that f is started under id.
func (w *Worker) begins(f *execution, id string, now time.Time) {
	if w.observer == nil {
		return
	}
	o := &observed{start: executor.Start{
		Class: string(f.name.Class), Target: f.name.Target, Session: f.name.Session, Effect: f.name.Effect,
		ID: id, Bridge: w.instance, At: now, Sampled: f.sampled,
	}}
	switch {
	case f.call != nil:
		o.start.ToolID, o.start.ToolName, o.start.CallID = f.call.ToolID, f.call.ToolName, f.call.ProviderCallID
		o.start.Arguments = f.call.Arguments
	case f.generation != nil:
		o.start.Model, o.start.Messages = f.generation.Model, f.asked.Messages
	}
	o.traceparent = w.observer.Started(o.start)
	f.observed = o
}

// ends tells the observer what became of the start of f, if there was one that
// it was not told of, and returns r.
func (w *Worker) ends(f *execution, r decision) decision {
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

// noteFirst returns delta with a note of when its first words come.
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
