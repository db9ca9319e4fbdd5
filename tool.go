package refold

import (
	"context"
	"time"

	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/planner"
)

// Tool is a tool of an agent: a Go function. Func makes one.
type Tool = function.Function

// ToolOption is an option of Func. Package function has more of them.
type ToolOption = function.Option

// Func makes a tool of a Go function, as [function.New] does, which documents how
// schemas are derived, how errors are shown to the model, and what ctx has. id is
// dotted, such as weather.get; the model calls it weather_get.
//
// A call is started at most once, and if its process dies its outcome is unknown,
// unless the tool is RetrySafe.
func Func[In, Out any](id string, fn func(context.Context, In) (Out, error), o ...ToolOption) *Tool {
	return function.New(id, fn, o...)
}

// Description sets what the model is told about the tool, at most 16 KiB.
func Description(text string) ToolOption { return function.Description(text) }

// RetrySafe declares that a call may be executed more than once, with the same
// idempotency key. It starts again if its process dies: it may run twice, and it is
// settled once.
func RetrySafe() ToolOption { return function.RetrySafe() }

// ParallelSafe declares that calls may run concurrently with others of a turn.
func ParallelSafe() ToolOption { return function.ParallelSafe() }

// ReadOnly declares that calls change nothing.
func ReadOnly() ToolOption { return function.ReadOnly() }

// NeedsApproval makes every call wait for a person: see [Session.Approvals]. A tool of
// which some calls do has the option function.Approval.
func NeedsApproval() ToolOption { return function.Approval(planner.ApprovalAlways) }

// Deadline limits the time of one start, in whole milliseconds; the default is five
// minutes.
func Deadline(d time.Duration) ToolOption { return function.Deadline(d) }
