package executor

import "time"

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
