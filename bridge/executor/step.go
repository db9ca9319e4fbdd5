package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// StepHook chooses what the turns of runs offer: it carries out the effects of
// one hook, the one that a run's config names as step_hook. It is asked before
// each turn of such a run, from several goroutines for different effects, and
// at most once at a time per effect name in this process.
//
// What it returns holds for that turn, in place of the run's step rules; only
// a Context carries on. The session records it, so a replay asks nobody. A hook
// may be asked more than once for one step (a bridge died, an answer was lost):
// the answer that is recorded first counts.
//
// A returned *Error settles the step `failed` with its code; an error that
// wraps context.DeadlineExceeded with `deadline_exceeded`; any other error, and
// a panic, with `hook_failed`. A choice that no session takes is not sent: it
// settles `bad_settlement`, and the detail names the limit. After a failure the
// run goes on as the config's fallback says: by its rules, or not at all. When
// ctx ends (run time over, run cancelled, bridge draining past its grace time)
// PrepareStep must return soon, and what it returns is not believed.
type StepHook interface {
	PrepareStep(ctx context.Context, step StepRequest) (StepChoice, error)
}

// PrepareStep makes a function a StepHook.
type PrepareStep func(ctx context.Context, step StepRequest) (StepChoice, error)

// PrepareStep calls f.
func (f PrepareStep) PrepareStep(ctx context.Context, step StepRequest) (StepChoice, error) {
	return f(ctx, step)
}

// StepRequest is the step that a turn begins with, as its effect says it: all
// that there is to decide by. What the effect has no room for, Input, Messages,
// Arguments and Result read from the log.
type StepRequest struct {
	Session  string            // session id
	Effect   string            // effect name, r1t2s
	Start    string            // ULID of this start of the effect
	Hook     string            // the hook's name
	Step     int               // 0-based: how many turns the run has had
	InputSeq uint64            // sequence of the event with the run's input
	Cut      bool              // the session's transcript has more than Messages reads
	Calls    []StepCall        // of the run's earlier steps, oldest first; the latest 256
	Tools    []StepTool        // that could be offered when the session asked, in the order of the registry
	Used     []string          // tool_ids of all that was carried out in earlier steps, sorted
	Facts    map[string]string // of the session
	Roles    []string          // of the run
	Context  json.RawMessage   // an object, as earlier steps left it; nil: none
	Usage    Usage             // of the run so far
	Provider string            // who is asked
	Model    string            // which model is asked, if the choice names no other

	Log StepLog // what Input, Messages, Result and Arguments read; nil: no bridge made the request
}

// StepLog reads from the session's log what a step's effect has no room for.
// Hooks use the methods of StepRequest.
type StepLog interface {
	Input(ctx context.Context) (Message, error)
	Messages(ctx context.Context) ([]Message, error)
	Result(ctx context.Context, c StepCall) (StepResult, error)
	Arguments(ctx context.Context, c StepCall) (string, error)
}

// StepTool is a tool that a choice may bring in, whatever the run's profile or
// config lists: it is not disabled, and it is available and permitted.
type StepTool struct {
	ToolID   string
	ToolName string
}

// StepCall is one call of an earlier step.
type StepCall struct {
	Effect   string // its name, r1t1c0
	ToolID   string // empty if the model called what the registry doesn't have
	ToolName string // as the model called it
	Status   string // succeeded, failed, cancelled, outcome_unknown, ignored
	Code     string // of a result that the session itself gave: tool_unknown, invalid_arguments, …
	Step     int    // 0-based
	Seq      uint64 // sequence of the event with the result; of the one that made the session give it, if it has a Code
	CallsSeq uint64 // sequence of the event in which the model called it, along with what it said
	Edit     uint64 // sequence of the approval that changed the arguments; 0: none did
	// Arguments are JSON text as they were carried out, or as the model wrote
	// them if they were refused: at most 1 KiB of a call, and 64 KiB of all, the
	// latest first. ArgumentsCut says that there are more: StepRequest.Arguments
	// reads them.
	Arguments    string
	ArgumentsCut bool
}

// HasUsedTool reports whether a tool was carried out in an earlier step of the
// run: asked, whether it succeeded, failed, or nobody can tell. A call that was
// refused or cancelled does not count. Name is a tool_id, or a tool_name under
// which one of Calls was made.
func (s StepRequest) HasUsedTool(name string) bool {
	return slices.Contains(s.Used, name) || slices.ContainsFunc(s.Calls, func(c StepCall) bool {
		return c.ToolName == name && slices.Contains(s.Used, c.ToolID)
	})
}

// Last returns the calls of the step before, none in step 0. It is a part of
// Calls.
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

// DecodeContext decodes Context into what v points to, as encoding/json does.
// Without a context it leaves v as it is.
func (s StepRequest) DecodeContext(v any) error {
	if len(s.Context) == 0 {
		return nil
	}
	if err := json.Unmarshal(s.Context, v); err != nil {
		return fmt.Errorf("context of %s: %w", s.Effect, err)
	}
	return nil
}

// StepChoice is what a hook wants of a turn. What is left out stays as the
// run's config has it: the zero value changes nothing. No choice widens what a
// session may do: disabled tools, and those that aren't available, stay out.
type StepChoice struct {
	// ActiveTools are the tools offered, by tool_id or tool_name: at most 512.
	// Nil: unchanged. Empty but not nil: none.
	ActiveTools []string
	// ToolRefs are the same by descriptor, sha256-…, which may be an alternate
	// of a tool. One of the two may be given.
	ToolRefs   []string
	ToolChoice string // auto, none, required, or a tool that must be called
	System     string // system text, at most 64 KiB
	Model      string // of the same provider, at most 128 bytes
	// Params are the provider's parameters, at most 32 KiB: a value that
	// encoding/json makes an object of. Nil, or null: unchanged.
	Params any
	// Context is what later steps and tools are shown in place of what there
	// was, at most 4 KiB: a value that encoding/json makes an object of. Nil,
	// or null: unchanged.
	Context any
}

// StepResult is how an executor ended a call.
type StepResult struct {
	Text  string // the whole, up to 8 MiB; a line stands for each blob that is no text
	Parts []Part // the text, then the images that lines of it name; nil: it has none
	Error *Error // why the call did not succeed; nil if it did, or if that is not known
}

// errNoLog is the error of reading for a request that no bridge made.
var errNoLog = errors.New("no bridge made this step request: there is no log to read")

// Input returns the input that the run began with, as a model is shown it: text,
// and images in Parts. Blobs are read, and refused if their bytes are not those
// of their hash. An error wraps *Error if reading again is of no use.
func (s StepRequest) Input(ctx context.Context) (Message, error) {
	if s.Log == nil {
		return Message{}, errNoLog
	}
	return s.Log.Input(ctx)
}

// Messages returns the conversation so far as the model would be shown it next,
// without steers that wait: inputs, answers, calls with their results, of this
// run and of those before it. They are the latest of the session's transcript,
// from at most 512 items; Cut says that there are earlier ones. Large results
// are shortened as they are for a model. Blobs and errors are as for Input.
func (s StepRequest) Messages(ctx context.Context) ([]Message, error) {
	if s.Log == nil {
		return nil, errNoLog
	}
	return s.Log.Messages(ctx)
}

// Result returns the result of one of Calls, read from the log. A call that the
// session itself refused or ended has its Code as Error, and nothing is read.
// Blobs and errors are as for Input.
func (s StepRequest) Result(ctx context.Context, c StepCall) (StepResult, error) {
	switch {
	case c.Code != "":
		return StepResult{Error: &Error{Code: c.Code}}, nil
	case s.Log == nil:
		return StepResult{}, errNoLog
	}
	return s.Log.Result(ctx, c)
}

// Arguments returns the whole arguments of one of Calls: JSON text as they were
// carried out, or as the model wrote them if they were refused. If they were cut
// they are read from the log, or from a blob if no event could hold them. Errors
// are as for Input.
func (s StepRequest) Arguments(ctx context.Context, c StepCall) (string, error) {
	switch {
	case !c.ArgumentsCut:
		return c.Arguments, nil
	case s.Log == nil:
		return "", errNoLog
	}
	return s.Log.Arguments(ctx, c)
}
