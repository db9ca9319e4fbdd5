package session

import (
	"slices"
	"strconv"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// configFault says what is wrong with a config under a registry. With
// complete, a config that names no provider or model is wrong too.
func configFault(reg *planner.Registry, c *RunConfig, complete bool) *refusal {
	switch {
	case c == nil:
		return nil
	case complete && c.Provider == "":
		return refuse(RejectMissingProvider, "config.provider: is missing")
	case complete && c.Model == "":
		return refuse(RejectMissingModel, "config.model: is missing")
	case c.Provider != "" && !isToken(c.Provider):
		return refuse(RejectInvalidData, "config.provider: is a subject token: 1 to 64 of A-Za-z0-9_-")
	case len(c.Model) > NameBytesMax, len(c.Profile) > NameBytesMax, len(c.ToolChoice) > NameBytesMax:
		return refuse(RejectLimitExceeded, "config: model, profile and tool_choice are at most "+strconv.Itoa(NameBytesMax)+" bytes")
	case len(c.System) > SystemBytesMax:
		return refuse(RejectLimitExceeded, "config.system: at most "+strconv.Itoa(SystemBytesMax)+" bytes")
	case len(c.Params) > ParamsBytesMax:
		return refuse(RejectLimitExceeded, "config.params: at most "+strconv.Itoa(ParamsBytesMax)+" bytes")
	case len(c.Params) > 0 && !codec.IsMap(c.Params):
		return refuse(RejectInvalidData, "config.params: is an object")
	case c.TurnsMax < 0 || c.TurnsMax > TurnsMax:
		return refuse(RejectInvalidData, "config.turns_max: 1 to "+strconv.Itoa(TurnsMax)+", or absent")
	case c.Profile != "" && !reg.HasProfile(c.Profile):
		return refuse(RejectUnknownProfile, "config.profile: the registry has no profile "+quoted(c.Profile))
	}
	if bad := deadlinesFault(c.DeadlinesMS); bad != nil {
		return bad
	}
	return configToolsFault(reg, c)
}

// configToolsFault checks every list of tools in c, and its tool_choice.
func configToolsFault(reg *planner.Registry, c *RunConfig) *refusal {
	lists := []struct {
		field string
		names []string
	}{{"active_tools", c.active()}, {"disable", c.Disable}, {"enable", c.Enable}, {"force", c.Force}}
	for _, list := range lists {
		if len(list.names) > NamesMax {
			return refuse(RejectLimitExceeded, "config."+list.field+": at most "+strconv.Itoa(NamesMax)+" names")
		}
		for i, name := range list.names {
			if _, ok := reg.Lookup(name); !ok {
				return refuse(RejectUnknownTool, "config."+list.field+"["+strconv.Itoa(i)+"]: the registry has no tool "+
					quoted(name))
			}
		}
	}
	if _, ok := reg.Lookup(c.ToolChoice); !ok && !isModeOfChoice(c.ToolChoice) {
		return refuse(RejectUnknownTool, "config.tool_choice: auto, none, required, or a tool of the registry, not "+quoted(c.ToolChoice))
	}
	return nil
}

// isModeOfChoice reports whether a tool_choice names no tool.
func isModeOfChoice(choice string) bool {
	switch choice {
	case "", "auto", "none", "required":
		return true
	}
	return false
}

// deadlinesFault checks that every deadline given is within its bounds.
func deadlinesFault(d *DeadlinesMS) *refusal {
	if d == nil {
		return nil
	}
	for _, ms := range []int64{d.Call, d.Turn} {
		if ms != 0 && (ms < DeadlineMinMS || ms > DeadlineMaxMS) {
			return refuse(RejectInvalidData, "config.deadlines_ms: "+strconv.Itoa(DeadlineMinMS)+" to "+strconv.Itoa(DeadlineMaxMS)+
				", not "+strconv.FormatInt(ms, 10))
		}
	}
	return nil
}

// ingressFault says which field of c may not come through the door `in`.
func (in *Install) ingressFault(c *RunConfig) *refusal {
	given := []struct {
		field string
		is    bool
	}{
		{"active_tools", c.ActiveTools != nil}, {"deadlines_ms", c.DeadlinesMS != nil}, {"disable", c.Disable != nil},
		{"enable", c.Enable != nil}, {"force", c.Force != nil}, {"model", c.Model != ""}, {"params", c.Params != nil},
		{"profile", c.Profile != ""}, {"provider", c.Provider != ""}, {"system", c.System != ""},
		{"tool_choice", c.ToolChoice != ""}, {"turns_max", c.TurnsMax != 0},
	}
	for _, g := range given {
		if g.is && !slices.Contains(in.ingress, g.field) {
			return refuse(RejectNotPermitted, "config."+g.field+": the install policy keeps it to the door ctl")
		}
	}
	return nil
}

// active returns the tools that the config names as active.
func (c *RunConfig) active() []string {
	if c.ActiveTools == nil {
		return nil
	}
	return *c.ActiveTools
}

// isToken reports whether text can stand as one token of a subject.
func isToken(text string) bool {
	if len(text) < 1 || len(text) > 64 {
		return false
	}
	for _, c := range []byte(text) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// sessionConfigured replaces the session's config. Runs that were requested
// before keep theirs.
func (s *State) sessionConfigured(data codec.Raw) *refusal {
	config, bad := decodeSessionConfig(data)
	if bad != nil {
		return bad
	}
	if bad := configFault(s.install.Registry, &config.Run, false); bad != nil {
		return bad
	}
	if bad := queueMaxFault(config.QueueMax); bad != nil {
		return bad
	}
	s.Config = config
	return nil
}

// queueMaxFault says what is wrong with a queue_max.
func queueMaxFault(n int) *refusal {
	if n < 0 || n > QueueMax {
		return refuse(RejectInvalidData, "queue_max: 1 to "+strconv.Itoa(QueueMax)+", or absent")
	}
	return nil
}

// decodeSessionConfig takes queue_max out of the fields of a run's config.
func decodeSessionConfig(data codec.Raw) (*SessionConfig, *refusal) {
	var fields codec.Pairs
	if bad := decodeBody(data, &fields); bad != nil {
		return nil, bad
	}
	var config SessionConfig
	rest := make(codec.Pairs, 0, len(fields))
	for _, f := range fields {
		if f.Key != "queue_max" {
			rest = append(rest, f)
		} else if bad := decodeBody(f.Value, &config.QueueMax); bad != nil {
			return nil, refuse(RejectInvalidData, "data: queue_max: is a whole number")
		}
	}
	if bad := decodeBody(encode(rest), &config.Run); bad != nil {
		return nil, bad
	}
	return &config, nil
}

// toolProfileSelected selects the session's profile, from the next turn on.
func (s *State) toolProfileSelected(b *ToolProfileSelected) *refusal {
	if !s.install.Registry.HasProfile(b.Profile) {
		return refuse(RejectUnknownProfile, "profile: the registry has no profile "+quoted(b.Profile))
	}
	s.Profile, s.toolsMoved = b.Profile, true
	return nil
}

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
