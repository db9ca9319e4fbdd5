package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/codec"
)

// NewRegistry validates tools and profiles as a whole and returns them as a
// registry, or a *RegistryError for the first fault: tools in the order given,
// then profiles, then the default, then the table of providers. The registry
// keeps copies with defaults filled in: tools by tool_id, profiles by name with
// tool_ids in their own order, providers in lower case (see ResolveProfile).
func NewRegistry(tools []ToolSpec, profiles []Profile, defaultProfile string, byProvider codec.Pairs) (*Registry, error) {
	if len(tools) > ToolsMax {
		return nil, fault("tools", "%d tools, at most %d", len(tools), ToolsMax)
	}
	var room registryRoom
	checked := make([]tool, len(tools))
	taken := names{ids: make(map[string]int, len(tools)), names: make(map[string]int, len(tools)), folded: make(map[string]int, len(tools))}
	for i, spec := range tools {
		path := fmt.Sprintf("tools[%d]", i)
		t, bad := newTool(path, cloneSpec(spec), &room, ofRegistry)
		if bad == nil {
			bad = taken.add(path, i, &t)
		}
		if bad != nil {
			return nil, bad
		}
		checked[i] = t
	}
	slices.SortFunc(checked, func(a, b tool) int { return strings.Compare(a.spec.ToolID, b.spec.ToolID) })
	r := &Registry{defaultProfile: defaultProfile}
	r.index(checked)
	if bad := checkKinds(tools); bad != nil {
		return nil, bad
	}
	if bad := r.addApprovals(tools, &room); bad != nil {
		return nil, bad
	}
	if bad := r.addProfiles(profiles, &room); bad != nil {
		return nil, bad
	}
	if defaultProfile != "" && !r.HasProfile(defaultProfile) {
		return nil, fault("default_profile", "there is no profile %+q", clip(defaultProfile, NameBytesMax))
	}
	if bad := r.addProviders(byProvider); bad != nil {
		return nil, bad
	}
	r.room = room
	if err := r.encode(); err != nil {
		return nil, err
	}
	return r, nil
}

// cloneSpec copies a spec and everything that it points to.
func cloneSpec(spec ToolSpec) ToolSpec {
	spec.Alternates = slices.Clone(spec.Alternates)
	for i := range spec.Alternates {
		spec.Alternates[i].ArgsSchema = slices.Clone(spec.Alternates[i].ArgsSchema)
	}
	spec.ArgsSchema = slices.Clone(spec.ArgsSchema)
	spec.Availability = slices.Clone(spec.Availability)
	spec.Needs = slices.Clone(spec.Needs)
	spec.Requires = slices.Clone(spec.Requires)
	return spec
}

// names holds the names of the tools seen so far, with their positions.
type names struct {
	ids    map[string]int
	names  map[string]int
	folded map[string]int // names in lower case
}

// add adds a tool's names. No two tools share a tool_id or tool_name: lists
// could not distinguish them. Nor do two tool_names differ by case alone: a
// model, or a person who approves, would confuse them. Names of one tool may be
// the same.
func (n names) add(path string, i int, t *tool) *RegistryError {
	id := t.spec.ToolID
	if other, ok := n.ids[id]; ok {
		return fault(path+".tool_id", "%+q is that of tools[%d] too", id, other)
	}
	if other, ok := n.names[id]; ok {
		return fault(path+".tool_id", "%+q is the tool_name of tools[%d]: lists could not tell them apart", id, other)
	}
	for v := range t.descriptors {
		name := t.descriptors[v].ToolName
		at := path + variantPath(v) + ".tool_name"
		if other, ok := n.names[name]; ok && other != i {
			return fault(at, "%+q is that of tools[%d] too", name, other)
		}
		folded := strings.ToLower(name)
		if other, ok := n.folded[folded]; ok && other != i {
			return fault(at, "%+q differs by case alone from a tool_name of tools[%d]: choose another name", name, other)
		}
		if other, ok := n.ids[name]; ok {
			return fault(at, "%+q is the tool_id of tools[%d]: lists could not tell them apart", name, other)
		}
		n.names[name], n.folded[folded] = i, i
	}
	n.ids[id] = i
	return nil
}

// variantPath returns where a tool's descriptor v stands in its spec.
func variantPath(v int) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf(".alternates[%d]", v-1)
}

func (r *Registry) index(tools []tool) {
	r.tools = tools
	r.specs = make([]ToolSpec, len(tools))
	r.byID = make(map[string]ToolIndex, len(tools))
	r.byName = make(map[string]offered, len(tools))
	r.byRef = make(map[codec.Ref]offered, len(tools))
	for i := range tools {
		r.specs[i] = tools[i].spec
		r.byID[tools[i].spec.ToolID] = ToolIndex(i)
		for v, d := range tools[i].descriptors {
			o := offered{tool: ToolIndex(i), variant: v}
			// A name that several descriptors of a tool have means the first.
			if _, ok := r.byName[d.ToolName]; !ok {
				r.byName[d.ToolName] = o
			}
			r.byRef[d.ref] = o
		}
	}
}

// addApprovals compiles the approval conditions of tools, in the order given.
func (r *Registry) addApprovals(tools []ToolSpec, room *registryRoom) *RegistryError {
	for i, spec := range tools {
		switch spec.Approval {
		case "", ApprovalNever, ApprovalAlways:
			continue
		}
		path := fmt.Sprintf("tools[%d].approval", i)
		if len(spec.Approval) > WhenBytesMax {
			return fault(path, "%d bytes, at most %d", len(spec.Approval), WhenBytesMax)
		}
		if bad := room.takeWhens(path, len(spec.Approval)); bad != nil {
			return bad
		}
		compiled, bad := compileApproval(r, spec.Approval)
		if bad != nil {
			return fault(path, "is never, always, or a condition: it %s", bad.Detail)
		}
		r.tools[r.byID[spec.ToolID]].approval = compiled
	}
	return nil
}

func (r *Registry) addProfiles(profiles []Profile, room *registryRoom) *RegistryError {
	if len(profiles) > ProfilesMax {
		return fault("profiles", "%d profiles, at most %d", len(profiles), ProfilesMax)
	}
	taken := make(map[string]int, len(profiles))
	for i, p := range profiles {
		path := fmt.Sprintf("profiles[%d]", i)
		if !IsName(p.Profile) {
			return fault(path+".profile", "is 1 to %d of A-Za-z0-9_-, not %+q", NameBytesMax, clip(p.Profile, NameBytesMax))
		}
		if other, ok := taken[p.Profile]; ok {
			return fault(path+".profile", "%+q is that of profiles[%d] too", p.Profile, other)
		}
		taken[p.Profile] = i
		resolved := profile{name: p.Profile, tools: make([]offered, 0, len(p.Tools))}
		for j, name := range p.Tools {
			at := fmt.Sprintf("%s.tools[%d]", path, j)
			o, ok := r.resolve(name)
			if !ok {
				return fault(at, "there is no tool %+q", clip(name, ToolIDBytesMax))
			}
			if slices.ContainsFunc(resolved.tools, func(before offered) bool { return before.tool == o.tool }) {
				return fault(at, "%+q is listed before", name)
			}
			resolved.tools = append(resolved.tools, o)
		}
		if bad := room.takeWhens(path+".steps", whensBytes(p.Steps)); bad != nil {
			return bad
		}
		steps, bad := CompileSteps(r, p.Steps)
		if bad != nil {
			return fault(path+".steps"+bad.Path, "%s", bad.Detail)
		}
		resolved.steps = steps
		r.asksCalls = r.asksCalls || steps.AsksCalls()
		r.profiles = append(r.profiles, resolved)
	}
	slices.SortFunc(r.profiles, func(a, b profile) int { return strings.Compare(a.name, b.name) })
	return nil
}

// encode fixes the registry's bytes and hash.
func (r *Registry) encode() error {
	data, err := codec.Marshal(registryWire{
		DefaultProfile: r.defaultProfile, Layers: r.layers, ProfileByProvider: r.ProfileByProvider(), Profiles: r.Profiles(), Tools: r.specs,
	})
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	if len(data) > RegistryBytesMax {
		return fault("tools", "the registry takes %d bytes, at most %d", len(data), RegistryBytesMax)
	}
	r.bytes, r.hash = data, codec.Sum(data)
	return nil
}
