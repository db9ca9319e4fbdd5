package session

import (
	"fmt"
	"slices"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// RulesVersion is the newest rules version that this code folds.
const RulesVersion = 1

// InstallRecord is the wire form of an install record: the starting point of every
// session that opens after it.
type InstallRecord struct {
	Capabilities      []string           `msgpack:"capabilities,omitempty"`
	Config            *RunConfig         `msgpack:"config,omitempty"`
	DefaultProfile    string             `msgpack:"default_profile,omitempty"`
	Policy            Policy             `msgpack:"policy,omitempty"`
	ProfileByProvider codec.Pairs        `msgpack:"profile_by_provider,omitempty"`
	Profiles          []planner.Profile  `msgpack:"profiles,omitempty"`
	Rules             int                `msgpack:"rules"`
	Spaces            []Grant            `msgpack:"spaces,omitempty"`
	Tools             []planner.ToolSpec `msgpack:"tools"`
	V                 int                `msgpack:"v"`
}

// Policy is what an install record permits.
type Policy struct {
	// Approval decides over calls before a tool's own approval does. The first
	// matching rule applies.
	Approval []planner.ApprovalRule `msgpack:"approval,omitempty"`
	// Coverage is how `refold tools check` treats a tool that no running bridge
	// serves: warn (default) or fail.
	Coverage string `msgpack:"coverage,omitempty"`
	// Ingress lists the fields of a RunConfig, and `roles`, that a client may
	// set through the door `in`; absent means DefaultIngress.
	Ingress []string `msgpack:"ingress,omitempty"`
	// IngressTools is what the tool lists of a client's config do: narrow (default)
	// selects among the tools that the operator's config offers, replace takes the
	// place of the operator's lists.
	IngressTools string `msgpack:"ingress_tools,omitempty"`
	// Skills is the effect of active skills' allowed-tools: narrow (default) offers
	// in a turn only tools that one of them allows, ignore does nothing.
	Skills string `msgpack:"skills,omitempty"`
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
	stack     stack         // of the record's manifests
	pins      []SpacePin    // of these manifests
	content   *spaceContent // of these manifests; nil: there are none
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
		return nil, &UnknownRulesError{Rules: rules}
	}
	var rec InstallRecord
	if err := codec.Decode(canonical, &rec); err != nil {
		return nil, fmt.Errorf("install record: %w", err)
	}
	if rec.V != Version {
		return nil, fmt.Errorf("install record: v is %d, this release reads %d", rec.V, Version)
	}
	if rec.Rules < 1 {
		return nil, fmt.Errorf("install record: rules is %d, the first version is 1", rec.Rules)
	}
	registry, err := planner.NewRegistry(rec.Tools, rec.Profiles, rec.DefaultProfile, rec.ProfileByProvider)
	if err != nil {
		return nil, fmt.Errorf("install record: %w", err)
	}
	in := &Install{Hash: codec.Sum(canonical), Rules: rec.Rules, Record: rec, Registry: registry, ingress: rec.Policy.Ingress, floor: planner.NewFloor(registry)}
	if in.ingress == nil {
		in.ingress = DefaultIngress()
	}
	if err := in.composeSpaces(); err != nil {
		return nil, fmt.Errorf("install record: %w", err)
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

// UnknownRulesError reports that a record requires rules that this release does not
// know. The host gives such a session back instead of folding it wrongly.
type UnknownRulesError struct{ Rules int }

func (e *UnknownRulesError) Error() string {
	return fmt.Sprintf("install record: rules %d, this release knows 1 to %d: upgrade it", e.Rules, RulesVersion)
}

// check validates all parts but the registry.
func (in *Install) check() error {
	if bad := in.configFault(); bad != nil {
		return fmt.Errorf("install record: config: %s: %s", bad.code, bad.detail)
	}
	for i := range in.Record.Tools {
		if fault := toolFault(&in.Record.Tools[i]); fault != "" {
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
		if field != ingressRoles && !slices.Contains(configFields, field) {
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

// toolFault returns why the fold can't keep a tool's binding, or "".
func toolFault(tool *planner.ToolSpec) string {
	if tool.DeadlineMS < 0 || tool.DeadlineMS > toolRunMaxMS {
		return fmt.Sprintf("deadline_ms is %d, it may be 0 to %d", tool.DeadlineMS, toolRunMaxMS)
	}
	return ""
}

// ingressRoles is the name of a run's roles in Policy.Ingress.
const ingressRoles = "roles"

// BuiltinInstall returns the canonical bytes of the built-in install record: the
// registry and profiles of package planner, the default policy, no default config.
// The first session-actor publishes it if the log has no record.
func BuiltinInstall() []byte {
	d := planner.Builtin()
	return encode(InstallRecord{
		DefaultProfile: d.DefaultProfile, ProfileByProvider: d.ProfileByProvider, Profiles: d.Profiles, Rules: RulesVersion, Tools: d.Tools, V: Version,
	})
}
