package bridge

import (
	"sync/atomic"
	"time"
)

// Observer is told of every start of an effect in this process: for metrics and
// traces. Its methods are called from many goroutines, and what they do is done
// while an effect waits: they must return soon and must not block.
type Observer interface {
	// Started is called right before a model, a tool, a hook or a reader is. It
	// returns the traceparent that a tool hands on to whoever it calls (see
	// [Call]); empty: none.
	Started(s Start) (traceparent string)
	// Ended is called once for each Started: when what was started has returned,
	// or is given up, and before its settlement is stored.
	Ended(s Start, e End)
}

// Start is one start of an effect.
type Start struct {
	Class    string // llm, tool, step, space
	Target   string
	Session  string
	Effect   string    // its name: r1t2c0
	ID       string    // ULID of this start
	Bridge   string    // instance of this bridge
	At       time.Time // when it began
	Model    string    // of a generation: that is asked
	ToolID   string    // of a call
	ToolName string    // of a call
	CallID   string    // of a call: the provider's own id, or empty
	Sampled  bool      // the session-actor traces the run

	// What the model is asked and the tool is given: not to be kept or changed.
	Messages  []Message
	Arguments string // JSON
}

// End is how a start ended.
type End struct {
	At        time.Time
	Status    string    // succeeded, failed, cancelled, outcome_unknown; empty: it was given back, and is started again
	Code      string    // of its error
	Usage     Usage     // of a generation
	Model     string    // of a generation: that answered
	Finish    string    // of a generation: finish reason
	FirstText time.Time // of a generation: when its first words came; zero: none came

	// What the model said, or the tool's output: not to be kept or changed.
	Text  string
	Calls []AnswerCall
}

// observed is the start that a flight's executor runs under.
type observed struct {
	start       Start
	traceparent string
	ended       atomic.Bool  // the observer was told
	first       atomic.Int64 // when the first words came, Unix ns; 0: none yet
}

// begins tells the observer that f is started under id.
func (w *worker) begins(f *flight, id string, now time.Time) {
	if w.observer == nil {
		return
	}
	o := &observed{start: Start{
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

// traceparent returns what the observer said of the flight's start.
func (f *flight) traceparent() string {
	if f.observed == nil {
		return ""
	}
	return f.observed.traceparent
}

// ends tells the observer what became of the start of f, if there was one that
// it was not told of, and returns r.
func (w *worker) ends(f *flight, r ruling) ruling {
	o := f.observed
	if o == nil || r.next == nextElsewhere || o.ended.Swap(true) {
		return r
	}
	end := End{At: w.now()}
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

// watch returns delta with a note of when its first words come.
func (w *worker) watch(f *flight, delta func(text string)) func(text string) {
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
