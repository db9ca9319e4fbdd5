package session

import "slices"

// Codes of the error by which a bridge or a host loop says that it refused a
// call without starting it, since the tool there is not what the session was
// told of: nobody but a person can do something about it, so the notice
// ToolRejected tells it. What passes by itself (a server that is not there) or
// is the model's to do better (its arguments) is none of them. Closed, and part
// of the fold: another code here needs new rules after the first release.
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

// IsRefusedCode reports whether a call that failed with this error code was
// refused by who was to carry it out, and not started.
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
