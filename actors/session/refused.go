package session

import "slices"

// Error codes with which a bridge or a host loop refuses a call without starting
// it, because its tool differs from the one in the session's registry. Only a
// person can repair that, so the notice ToolRejected reports it. Temporary failures
// (a server is not running) and the model's own (wrong arguments) are not among
// them. The set is closed and part of the fold: a new code needs new rules after
// the first release.
const (
	RefusedToolChanged   = "tool_changed"    // it differs from what was imported, or is less safe
	RefusedToolGone      = "tool_gone"       // its server no longer has it
	RefusedToolNotPinned = "tool_not_pinned" // it was never imported there
	RefusedToolNotServed = "tool_not_served" // the bridge of the target does not have it
	RefusedToolUnbound   = "tool_unbound"    // the host does not have it
	RefusedService       = "service_refused" // its service's current description can't be used
)

var refusedCodes = []string{
	RefusedToolChanged, RefusedToolGone, RefusedToolNotPinned, RefusedToolNotServed, RefusedToolUnbound, RefusedService,
}

// IsRefusedCode reports whether a call that failed with this code was refused
// by its executor and never started.
func IsRefusedCode(code string) bool { return slices.Contains(refusedCodes, code) }

// notifyRefused reports that call i was refused and not started, if the settlement
// being folded has such an error.
func (s *State) notifyRefused(i int, b *ToolCallSettled) {
	if CallStatus(b.Status) != CallFailed || b.Error == nil || !IsRefusedCode(b.Error.Code) {
		return
	}
	notify(s, NoticeToolRejected, ToolRejected{
		Effect: callName(s.Turn.Run, s.Turn.Number, i), ToolName: s.Turn.Batch.Calls[i].ToolName,
		Code: b.Error.Code, Detail: clip(b.Error.Detail, DetailBytesMax),
	})
}
