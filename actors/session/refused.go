package session

import "slices"

// Error codes with which a bridge or a host loop refuses a call without
// starting it, because its tool differs from the one in the session's registry.
// Only a person can repair that, so the notice ToolRejected reports it. What
// passes by itself (a server that is not there) or is the model's to do better
// (its arguments) is none of them. Closed, and part of the fold: another code
// here needs new rules after the first release.
const (
	RefusedToolChanged   = "tool_changed"    // it is not what was imported, or less safe
	RefusedToolGone      = "tool_gone"       // its server does not have it any more
	RefusedToolNotPinned = "tool_not_pinned" // it was never imported there
	RefusedToolNotServed = "tool_not_served" // what serves the target does not have it
	RefusedToolUnbound   = "tool_unbound"    // the host does not have it
	RefusedService       = "service_refused" // what its service says of it now can't be used
)

var refusedCodes = []string{
	RefusedToolChanged, RefusedToolGone, RefusedToolNotPinned, RefusedToolNotServed, RefusedToolUnbound, RefusedService,
}

// IsRefusedCode reports whether a call that failed with this code was refused
// by its executor and never started.
func IsRefusedCode(code string) bool { return slices.Contains(refusedCodes, code) }

// sayRefused says that call i, whose settlement is being folded, was refused
// and not started, if that is what its error says.
func (s *State) sayRefused(i int, b *ToolCallSettled) {
	if CallStatus(b.Status) != CallFailed || b.Error == nil || !IsRefusedCode(b.Error.Code) {
		return
	}
	say(s, NoticeToolRejected, ToolRejected{
		Effect: callName(s.Turn.Run, s.Turn.Number, i), ToolName: s.Turn.Batch.Calls[i].ToolName,
		Code: b.Error.Code, Detail: clip(b.Error.Detail, DetailBytesMax),
	})
}
