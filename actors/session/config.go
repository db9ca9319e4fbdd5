package session

import (
	"cmp"
	"strconv"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// SessionConfig is the session's own config. On the wire, queue_max is among the
// fields of the RunConfig.
type SessionConfig struct {
	QueueMax int       `msgpack:"queue_max,omitempty"` // 0: 16
	Run      RunConfig `msgpack:"run"`

	// Workspace is the manifest that Run.Workspace names.
	Workspace *SpacePin `msgpack:"workspace,omitempty"`
}

// configFault checks a config under a registry. With complete, a config without a
// provider or model is refused too.
func configFault(reg *planner.Registry, c *RunConfig, complete bool) *refusal {
	switch {
	case c == nil:
		return nil
	case complete && c.Provider == "":
		return refuse(RejectMissingProvider, "config.provider: is missing")
	case complete && c.Model == "":
		return refuse(RejectMissingModel, "config.model: is missing")
	case c.Provider != "" && !planner.IsName(c.Provider):
		return refuse(RejectInvalidData, "config.provider: is a subject token: 1 to 64 of A-Za-z0-9_-")
	case len(c.Model) > NameBytesMax, len(c.Profile) > NameBytesMax, len(c.ToolChoice) > NameBytesMax:
		return refuse(RejectLimitExceeded, "config: model, profile and tool_choice are at most "+strconv.Itoa(NameBytesMax)+" bytes")
	case len(c.System) > SystemBytesMax:
		return refuse(RejectLimitExceeded, "config.system: at most "+strconv.Itoa(SystemBytesMax)+" bytes")
	case len(c.Params) > ParamsBytesMax:
		return refuse(RejectLimitExceeded, "config.params: at most "+strconv.Itoa(ParamsBytesMax)+" bytes")
	case len(c.Params) > 0 && !codec.IsMap(c.Params):
		return refuse(RejectInvalidData, "config.params: is an object")
	case codec.HasBinary(c.Params):
		return refuse(RejectInvalidData, "config.params: "+noBinary)
	case codec.HasBinary(c.ResponseFormat):
		return refuse(RejectInvalidData, "config.response_format: "+noBinary)
	case len(c.ResponseFormat) > FormatBytesMax:
		return refuse(RejectLimitExceeded, "config.response_format: at most "+strconv.Itoa(FormatBytesMax)+" bytes")
	case c.TurnsMax < 0 || c.TurnsMax > TurnsMax:
		return refuse(RejectInvalidData, "config.turns_max: 1 to "+strconv.Itoa(TurnsMax)+", or absent")
	case c.CacheTTL != "" && c.CacheTTL != CacheTTLShort && c.CacheTTL != CacheTTLLong && c.CacheTTL != CacheTTLOff:
		return refuse(RejectInvalidData, "config.cache_ttl: 5m, 1h or off, not "+quoted(c.CacheTTL))
	case c.ToolsMode != "" && c.ToolsMode != ToolsExact && c.ToolsMode != ToolsMasked:
		return refuse(RejectInvalidData, "config.tools_mode: exact or masked, not "+quoted(c.ToolsMode))
	case c.Profile != "" && !reg.HasProfile(c.Profile):
		return refuse(RejectUnknownProfile, "config.profile: the registry has no profile "+quoted(c.Profile))
	}
	if fault := formatFault(c.ResponseFormat); fault != "" {
		return refuse(RejectInvalidData, "config.response_format"+fault)
	}
	return cmp.Or(runFault(c), configToolsFault(reg, c))
}

// configToolsFault checks everything in c that names tools.
func configToolsFault(reg *planner.Registry, c *RunConfig) *refusal {
	if bad := cmp.Or(listsFault(reg, "config.", c.lists()), refsFault(reg, c)); bad != nil {
		return bad
	}
	if _, ok := reg.Lookup(c.ToolChoice); !ok && !isModeOfChoice(c.ToolChoice) {
		return refuse(RejectUnknownTool, "config.tool_choice: auto, none, required, or a tool of the registry, not "+quoted(c.ToolChoice))
	}
	if bad := hookFault(c.StepHook); bad != nil {
		return bad
	}
	if len(c.Steps) > 0 {
		if _, err := planner.CompileSteps(reg, c.Steps); err != nil {
			return ruleRefusal("config.steps", err)
		}
	}
	return nil
}

// refsFault checks that the registry binds every tool_ref.
func refsFault(reg *planner.Registry, c *RunConfig) *refusal {
	switch {
	case c.ToolRefs == nil:
		return nil
	case c.ActiveTools != nil:
		return refuse(RejectInvalidData, "config: active_tools or tool_refs, not both")
	case len(*c.ToolRefs) > NamesMax:
		return refuse(RejectLimitExceeded, "config.tool_refs: at most "+strconv.Itoa(NamesMax)+" names")
	}
	for i, ref := range *c.ToolRefs {
		if _, ok := reg.LookupRef(ref); !ok {
			return refuse(RejectUnknownTool, "config.tool_refs["+strconv.Itoa(i)+"]: the registry binds no descriptor "+ref.String())
		}
	}
	return nil
}

func hookFault(h *StepHook) *refusal {
	switch {
	case h == nil:
		return nil
	case !planner.IsName(h.Hook):
		return refuse(RejectInvalidData, "config.step_hook.hook: is a subject token: 1 to 64 of A-Za-z0-9_-")
	case h.DeadlineMS != 0 && (h.DeadlineMS < DeadlineMinMS || h.DeadlineMS > DeadlineMaxMS):
		return refuse(RejectInvalidData, "config.step_hook.deadline_ms: "+strconv.Itoa(DeadlineMinMS)+" to "+strconv.Itoa(DeadlineMaxMS)+
			", not "+strconv.FormatInt(h.DeadlineMS, 10))
	case h.Fallback != "" && h.Fallback != FallbackRules && h.Fallback != FallbackFail:
		return refuse(RejectInvalidData, "config.step_hook.fallback: rules or fail, not "+quoted(h.Fallback))
	}
	return nil
}

func ruleRefusal(path string, err *planner.RuleError) *refusal {
	code := RejectInvalidRule
	switch {
	case err.Unknown:
		code = RejectUnknownTool
	case err.TooLarge:
		code = RejectLimitExceeded
	}
	return refuse(code, path+err.Path+": "+err.Detail)
}

// isModeOfChoice reports whether a tool_choice names no tool.
func isModeOfChoice(choice string) bool {
	return choice == "" || choice == planner.ChoiceAuto || choice == planner.ChoiceNone || choice == planner.ChoiceRequired
}

func (c *RunConfig) lists() []list {
	return []list{{"active_tools", listOf(c.ActiveTools)}, {"disable", c.Disable}, {"enable", c.Enable}, {"force", c.Force}}
}

// sessionConfigured replaces the session's config. Earlier requests keep the config
// that they had.
func (s *State) sessionConfigured(data codec.Raw) *refusal {
	config, bad := decodeSessionConfig(data)
	if bad != nil {
		return bad
	}
	if config.Workspace, bad = s.ownWorkspace(&config.Run); bad != nil {
		return bad
	}
	st := s.stack()
	if bad := cmp.Or(s.configFault(&st, &config.Run, config.Workspace, false), queueMaxFault(config.QueueMax)); bad != nil {
		return bad
	}
	s.Config = config
	if s.Spaces != nil {
		s.dropContent()
	}
	return nil
}

func queueMaxFault(n int) *refusal {
	if n < 0 || n > QueueMax {
		return refuse(RejectInvalidData, "queue_max: 1 to "+strconv.Itoa(QueueMax)+", or absent")
	}
	return nil
}

// decodeSessionConfig splits queue_max from the fields of a run's config.
func decodeSessionConfig(data codec.Raw) (*SessionConfig, *refusal) {
	if bad := rulesCountFault("config.", data); bad != nil {
		return nil, bad
	}
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
