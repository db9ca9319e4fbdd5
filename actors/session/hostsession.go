package session

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/planner"
)

// hostSessionUpdated sets the host session's status, from the next turn on.
func (s *State) hostSessionUpdated(b *HostSessionUpdated) *refusal {
	host := HostSession(*b)
	if bad := hostFault(&host); bad != nil {
		return bad
	}
	if s.endsAnother(&host) {
		return refuse(RejectStale, "host session "+quoted(host.ID)+" is not the one that is ready, "+quoted(s.Host.ID))
	}
	s.setHost(host)
	return nil
}

// endsAnother reports whether h ends a host session other than the ready one. A
// worker's late report about an earlier host session must not end a later one.
func (s *State) endsAnother(h *HostSession) bool {
	return h.Status != "ready" && h.Status != "none" && h.ID != "" && s.hostStatus() == "ready" && s.Host.ID != "" && s.Host.ID != h.ID
}

// hostFault checks a host session, which may be nil.
func hostFault(h *HostSession) *refusal {
	if h == nil {
		return nil
	}
	switch h.Status {
	case "ready", "closed", "expired", "error", "none":
	default:
		return refuse(RejectInvalidData, "host_session.status: ready, closed, expired, error or none, not "+quoted(h.Status))
	}
	if len(h.ID) > HostIDBytesMax || len(h.Route) > HostIDBytesMax {
		return refuse(RejectInvalidData, "host_session: id and route are at most "+strconv.Itoa(HostIDBytesMax)+" bytes")
	}
	if h.Root != "" && (h.Root[0] != '/' || len(h.Root) > HostRootBytesMax) {
		return refuse(RejectInvalidData, "host_session.root: an absolute path of at most "+strconv.Itoa(HostRootBytesMax)+" bytes")
	}
	return nil
}

// setHost sets the host session; status none removes it.
func (s *State) setHost(h HostSession) {
	s.toolsMoved = true
	if h.Status == "none" {
		s.Host = nil
		return
	}
	if s.Host != nil && s.Host.ID == h.ID {
		h.Root, h.Route = cmp.Or(h.Root, s.Host.Root), cmp.Or(h.Route, s.Host.Route)
	}
	s.Host = &h
}

// hostRoot returns the host session's working directory, "" if unknown.
func (s *State) hostRoot() string {
	if s.Host == nil {
		return ""
	}
	return s.Host.Root
}

// callTarget returns the target of a call's effect: the executor's, or the worker
// that holds the host session, if the tool requires one and the route is a target
// below the executor's: host-w1 for host. Any other route is for people. So a
// worker routes calls of its own target alone.
func callTarget(tool *planner.ToolSpec, h *HostSession) string {
	target := tool.Executor.Target
	if h == nil || !strings.HasPrefix(h.Route, target+"-") || !planner.IsName(h.Route) {
		return target
	}
	if slices.ContainsFunc(tool.Availability, func(r planner.Rule) bool { return r.Kind == planner.RuleHostSessionReady }) {
		return h.Route
	}
	return target
}

// hostStatus returns the host session's status: one of the five.
func (s *State) hostStatus() string {
	if s.Host == nil {
		return "none"
	}
	return s.Host.Status
}
