package session

import "strconv"

// hostSessionUpdated sets the host session's status, from the next turn on.
func (s *State) hostSessionUpdated(b *HostSessionUpdated) *refusal {
	host := HostSession{ID: b.ID, Status: b.Status}
	if bad := hostFault(&host); bad != nil {
		return bad
	}
	s.setHost(host)
	return nil
}

// hostFault says what is wrong with a host session.
func hostFault(h *HostSession) *refusal {
	switch h.Status {
	case "ready", "closed", "expired", "error", "none":
	default:
		return refuse(RejectInvalidData, "host_session.status: ready, closed, expired, error or none, not "+quoted(h.Status))
	}
	if len(h.ID) > HostIDBytesMax || len(h.Route) > HostIDBytesMax {
		return refuse(RejectInvalidData, "host_session: id and route are at most "+strconv.Itoa(HostIDBytesMax)+" bytes")
	}
	return nil
}

// setHost sets the host session; none is the absence of one.
func (s *State) setHost(h HostSession) {
	s.toolsMoved = true
	if h.Status == "none" {
		s.Host = nil
		return
	}
	if h.Route == "" && s.Host != nil && s.Host.ID == h.ID {
		h.Route = s.Host.Route
	}
	s.Host = &h
}

// hostStatus returns the host session's status: one of the five.
func (s *State) hostStatus() string {
	if s.Host == nil {
		return "none"
	}
	return s.Host.Status
}
