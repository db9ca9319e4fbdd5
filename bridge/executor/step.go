package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// StepHook chooses what the turns of runs offer: it executes the effects of one
// hook, which a run's config names as step_hook. It is called before each turn of
// such a run, from several goroutines for different effects, and at most once at
// a time per effect name in this process.
//
// Its choice applies to that turn, in place of the run's step rules; only a
// Context applies to later turns too. The session records the choice, so a replay
// calls no hook. A hook may be called more than once for one step (a bridge died,
// an answer was lost): the choice recorded first counts.
//
// A returned *Error settles the step `failed` with its code; an error that wraps
// context.DeadlineExceeded with `deadline_exceeded`; any other error, and a
// panic, with `hook_failed`. A choice that no session accepts settles
// `bad_settlement`, and the detail names the limit. After a failure the run
// follows the config's fallback: it continues with its rules, or ends. When ctx
// ends (run time over, run cancelled, bridge draining past its grace time)
// PrepareStep must return soon, and its choice does not count.
type StepHook interface {
	PrepareStep(ctx context.Context, step StepRequest) (StepChoice, error)
}

// PrepareStep makes a function a StepHook.
type PrepareStep func(ctx context.Context, step StepRequest) (StepChoice, error)

// PrepareStep calls f.
func (f PrepareStep) PrepareStep(ctx context.Context, step StepRequest) (StepChoice, error) {
	return f(ctx, step)
}

// StepRequest is the step before a turn, as its effect has it: all the data for a
// choice. Input, Messages, Arguments and Result read from the log what is too
// large for the effect.
type StepRequest struct {
	Session  string            // session id
	Effect   string            // effect name, r1t2s
	Start    string            // ULID of this start of the effect
	Hook     string            // the hook's name
	Step     int               // 0-based: how many turns the run has had
	InputSeq uint64            // sequence of the event with the run's input
	Cut      bool              // the session's transcript has more than Messages reads
	Calls    []StepCall        // of the run's earlier steps, oldest first; the latest 256
	Tools    []StepTool        // that could be offered when the step was published, in the order of the registry
	Used     []string          // tool_ids of all tools executed in earlier steps, sorted
	Facts    map[string]string // of the session
	Roles    []string          // of the run
	Context  json.RawMessage   // an object, as earlier steps left it; nil: none
	Usage    Usage             // of the run so far
	Provider string            // of the turn
	Model    string            // of the turn, unless the choice names another

	Log StepLog // used by Input, Messages, Result and Arguments; nil: no bridge made the request
}

// StepLog reads from the session's log what is too large for a step's effect.
// Hooks use the methods of StepRequest.
type StepLog interface {
	Input(ctx context.Context) (Message, error)
	Messages(ctx context.Context) ([]Message, error)
	Result(ctx context.Context, c StepCall) (StepResult, error)
	Arguments(ctx context.Context, c StepCall) (string, error)
}

// StepTool is a tool that a choice may offer, even if the run's profile or config
// does not list it: it is not disabled, and it is available and permitted.
type StepTool struct {
	ToolID   string
	ToolName string
}

// StepCall is one call of an earlier step.
type StepCall struct {
	Effect   string // its name, r1t1c0
	ToolID   string // empty if the registry lacks the tool
	ToolName string // as the model called it
	Status   string // succeeded, failed, cancelled, outcome_unknown, ignored
	Code     string // of a result that the session itself gave: tool_unknown, invalid_arguments, …
	Step     int    // 0-based
	Seq      uint64 // sequence of the event with the result; with a Code, of the event that caused it
	CallsSeq uint64 // sequence of the event in which the model called it
	Edit     uint64 // sequence of the approval that changed the arguments; 0: none did
	// Arguments are JSON text as executed, or as the model wrote them if they were
	// refused: at most 1 KiB of a call, and 64 KiB of all, the latest first. If
	// ArgumentsCut is set, StepRequest.Arguments reads the rest.
	Arguments    string
	ArgumentsCut bool
}

// HasUsedTool reports whether a tool was executed in an earlier step of the run,
// whether it succeeded, failed, or its outcome is unknown. A call that was
// refused or cancelled does not count. name is a tool_id, or a tool_name in
// Calls.
func (s StepRequest) HasUsedTool(name string) bool {
	return slices.Contains(s.Used, name) || slices.ContainsFunc(s.Calls, func(c StepCall) bool {
		return c.ToolName == name && slices.Contains(s.Used, c.ToolID)
	})
}

// Last returns the calls of the previous step, none in step 0. The slice shares
// memory with Calls.
func (s StepRequest) Last() []StepCall {
	first := slices.IndexFunc(s.Calls, func(c StepCall) bool { return c.Step >= s.Step-1 })
	if first < 0 {
		return nil
	}
	return s.Calls[first:]
}

// Fact returns a fact of the session, empty if there is none.
func (s StepRequest) Fact(name string) string { return s.Facts[name] }

// HasRole reports whether the run has a role.
func (s StepRequest) HasRole(role string) bool { return slices.Contains(s.Roles, role) }

// DecodeContext decodes Context into v with encoding/json. Without a context it
// leaves v unchanged.
func (s StepRequest) DecodeContext(v any) error {
	if len(s.Context) == 0 {
		return nil
	}
	if err := json.Unmarshal(s.Context, v); err != nil {
		return fmt.Errorf("context of %s: %w", s.Effect, err)
	}
	return nil
}

// StepChoice is a hook's choice for a turn. Zero fields keep the run's config. No
// choice widens the rights of a session: tools that are disabled or not available
// are not offered.
type StepChoice struct {
	// ActiveTools are the tools offered, by tool_id or tool_name: at most 512.
	// Nil: unchanged. Empty but not nil: none.
	ActiveTools []string
	// ToolRefs are the same by descriptor, sha256-…, which may be an alternate
	// of a tool. At most one of the two may be set.
	ToolRefs   []string
	ToolChoice string // auto, none, required, or a tool that must be called
	System     string // system text, at most 64 KiB
	Model      string // of the same provider, at most 128 bytes
	// Params are the provider's parameters, at most 32 KiB: a value that
	// encoding/json encodes as an object. Nil, or null: unchanged.
	Params any
	// Context replaces the context of later steps and tools, at most 4 KiB: a value
	// that encoding/json encodes as an object. Nil, or null: unchanged.
	Context any
}

// StepResult is the result of a call.
type StepResult struct {
	Text  string // the whole, up to 8 MiB; a blob that is not text is one line
	Parts []Part // the text, then the images that it names; nil: no images
	Error *Error // why the call did not succeed; nil if it did, or if the reason is unknown
}

// errNoLog is the error of reading the log without a bridge.
var errNoLog = errors.New("no bridge made this step request: there is no log to read")

// Input returns the run's input as a model is shown it: text, and images in
// Parts. It reads blobs, and checks their bytes against their hash. An error that
// wraps *Error is permanent.
func (s StepRequest) Input(ctx context.Context) (Message, error) {
	if s.Log == nil {
		return Message{}, errNoLog
	}
	return s.Log.Input(ctx)
}

// Messages returns the conversation so far as the model would be shown it next,
// without pending steers: inputs, answers, and calls with their results, of this
// run and earlier ones. They come from at most 512 items, the latest of the
// session's transcript; Cut says that there are earlier ones. Large results are
// shortened as they are for a model. Blobs and errors are as for Input.
func (s StepRequest) Messages(ctx context.Context) ([]Message, error) {
	if s.Log == nil {
		return nil, errNoLog
	}
	return s.Log.Messages(ctx)
}

// Result returns the result of one of Calls from the log. For a call that the
// session itself refused or ended it returns the Code as Error, and reads
// nothing. Blobs and errors are as for Input.
func (s StepRequest) Result(ctx context.Context, c StepCall) (StepResult, error) {
	switch {
	case c.Code != "":
		return StepResult{Error: &Error{Code: c.Code}}, nil
	case s.Log == nil:
		return StepResult{}, errNoLog
	}
	return s.Log.Result(ctx, c)
}

// Arguments returns the whole arguments of one of Calls: JSON text as executed,
// or as the model wrote them if they were refused. If they were cut, it reads
// them from the log, or from a blob if no event could hold them. Errors are as
// for Input.
func (s StepRequest) Arguments(ctx context.Context, c StepCall) (string, error) {
	switch {
	case !c.ArgumentsCut:
		return c.Arguments, nil
	case s.Log == nil:
		return "", errNoLog
	}
	return s.Log.Arguments(ctx, c)
}
