package executor

import "time"

// Observer receives every start of an effect in this process, for metrics and
// traces. Its methods are called from many goroutines while an effect waits: they
// must return soon and must not block.
type Observer interface {
	// Started is called right before a model, a tool, a hook or a reader. It
	// returns the traceparent that a tool passes on in its own requests (see
	// [Call]); empty: none.
	Started(s Start) (traceparent string)
	// Ended is called once for each Started: after the executor has returned or was
	// abandoned, and before the settlement is stored.
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
	Model    string    // of a generation: the requested model
	ToolID   string    // of a call
	ToolName string    // of a call
	CallID   string    // of a call: the provider's own id, or empty
	// Traceparent is the parent that the session-actor gave the start's span; empty: it
	// does not trace the run.
	Traceparent string

	// The input of the model or tool, which an Observer must not keep or change.
	Messages  []Message
	Arguments string // JSON
}

// End is how a start ended.
type End struct {
	At        time.Time
	Status    string    // succeeded, failed, cancelled, outcome_unknown; empty: given back, it starts again
	Code      string    // of its error
	Usage     Usage     // of a generation
	Model     string    // of a generation: the model that answered
	Finish    string    // of a generation: finish reason
	FirstText time.Time // of a generation: when its first text arrived; zero: none did

	// The model's answer, or the tool's output, which an Observer must not keep
	// or change.
	Text  string
	Calls []AnswerCall
}
