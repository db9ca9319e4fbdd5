package session

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// InstallRecord has the tools, profiles, policy and default config of every session
// that opens after it. It is published on refold.install, as JSON or msgpack.
//
//wire:rule {"properties": {"config": {"dependentRequired": {"model": ["provider"], "provider": ["model"]}}, "tools": {"items": {"properties": {"needs": false}}}}}
type InstallRecord struct {
	// Capabilities, granted to every tool that requires them.
	Capabilities []string `msgpack:"capabilities,omitempty" lim:"item=any"`
	// The config of runs without one, in sessions without one. What a client's request
	// names takes the place of the same field here. It has a provider and a model, or
	// neither: then each request has to name them.
	Config *RunConfig `msgpack:"config,omitempty"`
	// A profile of this record, for runs whose provider is not in profile_by_provider.
	// Without it these runs have all tools.
	DefaultProfile string `msgpack:"default_profile,omitempty" lim:"@token"`
	// What sessions permit.
	Policy Policy `msgpack:"policy,omitempty"`
	// Profiles of providers: from the name of a provider, a token, to the name of a
	// profile. Names are compared as a whole, without regard to case; each may be there
	// once. It takes precedence over `default_profile`.
	ProfileByProvider codec.Pairs `msgpack:"profile_by_provider,omitempty" lim:"..planner.ProfilesMax,key=@token,value=@token"`
	// Lists of tools by name.
	Profiles []planner.Profile `msgpack:"profiles,omitempty" lim:"..planner.ProfilesMax"`
	// Version of the rules that sessions follow.
	Rules int `msgpack:"rules" lim:"1..RulesVersion"`
	// The spaces that sessions may adopt. The first grant that matches a name counts.
	Spaces []spaces.Grant `msgpack:"spaces,omitempty" lim:"..spaces.GrantsMax"`
	// The registry.
	Tools []planner.ToolSpec `msgpack:"tools" lim:"..planner.ToolsMax"`
	// Version of the protocol.
	V int `msgpack:"v" lim:"=1"`
}

// Policy is what an install record permits.
type Policy struct {
	// Which calls run, wait for a person, or are refused. It comes before a tool's own
	// approval. The first rule that matches decides.
	Approval []planner.ApprovalRule `msgpack:"approval,omitempty" lim:"..planner.ApprovalRulesMax"`
	// Treatment of a tool that a workspace names and the registry does not bind: warn
	// leaves it out and reports it, fail refuses the workspace. refold tools check treats
	// a tool that no running bridge serves likewise. warn if absent.
	Coverage string `msgpack:"coverage,omitempty" lim:"enum=Coverage"`
	// Fields of a RunConfig, and roles, that a request through the door in may have; with
	// compact, clients may publish CompactRequested.
	// Absent: active_tools, completion, disable, model, params, provider, system,
	// turns_max. Empty: none.
	Ingress []string `msgpack:"ingress,omitempty" lim:"item=fields=RunConfig"`
	// Effect of active_tools, tool_refs and enable in a client's config: narrow selects
	// among the tools that the operator's config offers, replace takes the place of the
	// operator's lists. narrow if absent.
	IngressTools string `msgpack:"ingress_tools,omitempty" lim:"enum=Ingress"`
	// Effect of the allowed-tools of active skills: narrow leaves tools out of a turn that
	// none of them allows, ignore does nothing. It never grants anything. narrow if
	// absent.
	Skills string `msgpack:"skills,omitempty" lim:"enum=Skills"`
}

// The values of Policy.Coverage.
const (
	CoverageWarn = "warn" // the default, also when empty
	CoverageFail = "fail"
)

// The values of Policy.IngressTools.
const (
	IngressNarrow  = "narrow" // the default, also when empty
	IngressReplace = "replace"
)

// DefaultIngress is the value of an absent Policy.Ingress.
func DefaultIngress() []string {
	return []string{"active_tools", "completion", "disable", "model", "params", "provider", "system", "turns_max"}
}

// Install is a parsed install record. It is immutable, and all sessions that pinned
// it share it.
type Install struct {
	Hash      codec.Hash // of the record's canonical bytes
	Rules     int
	Record    InstallRecord
	Registry  *planner.Registry
	ingress   []string
	approvals *planner.Approvals
	floor     *planner.Floor
	spaces    *spaces.Record
	offered   *planner.Registry // see Offered
}

// ParseInstall decodes an install record: JSON or msgpack. The error names the
// invalid part; no session pins an invalid record. After an UnknownRulesError the
// record may be valid: a later release pins it.
func ParseInstall(payload []byte) (*Install, error) {
	canonical, err := codec.Canonicalize(payload)
	if err != nil {
		return nil, fmt.Errorf("install record: %w", err)
	}
	if rules := rulesOf(canonical); rules > RulesVersion {
		return nil, fmt.Errorf("install record: %w", &UnknownRulesError{Rules: rules})
	}
	var rec InstallRecord
	if err := codec.Decode(canonical, &rec); err != nil {
		return nil, fmt.Errorf("install record: %w", err)
	}
	if bad := rec.limits(); bad != nil {
		return nil, fmt.Errorf("install record: %s", bad.detail)
	}
	if rec.V != Version {
		return nil, fmt.Errorf("install record: v is %d, this release reads %d", rec.V, Version)
	}
	registry, err := planner.NewRegistry(rec.Tools, rec.Profiles, rec.DefaultProfile, rec.ProfileByProvider)
	if err != nil {
		return nil, fmt.Errorf("install record: %w", err)
	}
	in := &Install{Hash: codec.Sum(canonical), Rules: rec.Rules, Record: rec, Registry: registry, ingress: rec.Policy.Ingress, floor: planner.NewFloor(registry)}
	if in.ingress == nil {
		in.ingress = DefaultIngress()
	}
	in.spaces, err = spaces.NewRecord(spaces.Record{
		Grants: rec.Spaces, Registry: registry, Floor: in.floor, Own: &sessionLayer, Results: &resultLayer, AllBound: rec.Policy.Coverage == CoverageFail, PromptFault: promptFault, ToolFault: toolFault,
	})
	if err != nil {
		return nil, fmt.Errorf("install record: %w", err)
	}
	in.offered = in.spaces.Composed()
	if rec.Config != nil && rec.Config.Context != nil {
		s := New(in, "")
		in.offered = s.NextRegistry()
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	return in, nil
}

// rulesOf decodes the field `rules` of a record, 0 if it is no number. It ignores
// other fields, since later rules may allow others.
func rulesOf(record []byte) int {
	var rules int
	if field, ok := fieldOf(record, "rules"); !ok || codec.Decode(field, &rules) != nil {
		return 0
	}
	return rules
}

// check validates all parts but the registry.
func (in *Install) check() error {
	if bad := in.configFault(); bad != nil {
		return fmt.Errorf("install record: config: %s: %s", bad.code, bad.detail)
	}
	for i := range in.Record.Tools {
		if fault := cmp.Or(toolFault(&in.Record.Tools[i]), agentFault(in.Registry, &in.Record.Tools[i])); fault != "" {
			return fmt.Errorf("install record: tools[%d].%s", i, fault)
		}
		if isSessionTool(in.Record.Tools[i].ToolID) {
			return fmt.Errorf("install record: tools[%d].tool_id: %s", i, reservedID)
		}
	}
	approvals, err := planner.CompileApprovals(in.Registry, in.Record.Policy.Approval)
	if err != nil {
		return fmt.Errorf("install record: policy.approval%s: %s", err.Path, err.Detail)
	}
	in.approvals = approvals
	for i, field := range in.ingress {
		if field != ingressRoles && field != ingressCompact && !slices.Contains(configFields, field) {
			return fmt.Errorf("install record: policy.ingress[%d]: a run config has no field %q", i, field)
		}
	}
	if c := in.Record.Policy.Coverage; c != "" && c != CoverageWarn && c != CoverageFail {
		return fmt.Errorf("install record: policy.coverage: %s or %s, not %q", CoverageWarn, CoverageFail, c)
	}
	if p := in.Record.Policy.IngressTools; p != "" && p != IngressNarrow && p != IngressReplace {
		return fmt.Errorf("install record: policy.ingress_tools: %s or %s, not %q", IngressNarrow, IngressReplace, p)
	}
	if p := in.Record.Policy.Skills; p != "" && p != SkillsNarrow && p != SkillsIgnore {
		return fmt.Errorf("install record: policy.skills: %s or %s, not %q", SkillsNarrow, SkillsIgnore, p)
	}
	return nil
}

// configFault checks the record's config.
func (in *Install) configFault() *refusal {
	c := in.Record.Config
	if c == nil {
		return nil
	}
	s := New(in, "")
	own, bad := s.ownWorkspace(c)
	if bad == nil {
		st := s.stack()
		bad = s.configFault(&st, c, own, c.Provider+c.Model != "")
	}
	return bad
}

// Composed returns the registry of a new session: Registry plus the tools of the
// record's spaces.
func (in *Install) Composed() *planner.Registry { return in.spaces.Composed() }

// Offered returns the registry of a new session's turns: Composed, and with a context
// in the record's config the tool that reads results.
func (in *Install) Offered() *planner.Registry { return in.offered }

// Manifests returns the record's manifests. Their blobs and files must be stored before
// the record is.
func (in *Install) Manifests() []*space.Manifest { return in.spaces.Manifests() }

// promptFault returns why the fold can't keep the params and the response_format of a
// prompt pack, or "".
func promptFault(params, format codec.Raw) string {
	if codec.HasBinary(params) || codec.HasBinary(format) {
		return "params or response_format " + noBinary
	}
	if fault := formatFault(format); fault != "" {
		return "response_format" + fault
	}
	return ""
}

// toolFault returns why the fold can't keep a tool's binding, or "".
func toolFault(tool *planner.ToolSpec) string {
	if tool.DeadlineMS < 0 || tool.DeadlineMS > toolRunMaxMS {
		return fmt.Sprintf("deadline_ms is %d, it may be 0 to %d", tool.DeadlineMS, toolRunMaxMS)
	}
	return ""
}

// Names in Policy.Ingress besides the fields of a config: of a run's roles, and of
// CompactRequested.
const (
	ingressRoles   = "roles"
	ingressCompact = "compact"
)

// allows reports whether clients may use what Policy.Ingress names so.
func (in *Install) allows(name string) bool { return slices.Contains(in.ingress, name) }

// BuiltinInstall returns the canonical bytes of the built-in install record: the
// registry and profiles of package planner, the default policy, and a config with a
// context, so that no session ends because its transcript is long. The first
// session-actor publishes it if the log has no record.
func BuiltinInstall() []byte {
	d := planner.Builtin()
	return encode(InstallRecord{
		Config: &RunConfig{Context: &ContextConfig{}}, DefaultProfile: d.DefaultProfile, ProfileByProvider: d.ProfileByProvider, Profiles: d.Profiles, Rules: RulesVersion, Tools: d.Tools, V: Version,
	})
}
