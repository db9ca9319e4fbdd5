package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/codec"
)

// NewRegistry validates tools and profiles as a whole and returns them as a
// registry, or a *RegistryError for the first fault: tools in the order given,
// then profiles, then the default. The registry keeps copies of what it was
// given, with defaults filled in, tools ordered by tool_id, profiles by name,
// and names in profiles replaced by tool_ids. A profile's own order counts and
// is kept.
func NewRegistry(tools []ToolSpec, profiles []Profile, defaultProfile string) (*Registry, error) {
	if len(tools) > ToolsMax {
		return nil, fault("tools", "%d tools, at most %d", len(tools), ToolsMax)
	}
	r := &Registry{defaultProfile: defaultProfile}
	checked := make([]tool, len(tools))
	for i := range tools {
		t, bad := newTool(fmt.Sprintf("tools[%d]", i), tools[i])
		if bad != nil {
			return nil, bad
		}
		checked[i] = t
	}
	if bad := checkUnique(checked); bad != nil {
		return nil, bad
	}
	slices.SortFunc(checked, func(a, b tool) int { return strings.Compare(a.spec.ToolID, b.spec.ToolID) })
	r.index(checked)
	if bad := r.addProfiles(profiles); bad != nil {
		return nil, bad
	}
	if defaultProfile != "" && !r.HasProfile(defaultProfile) {
		return nil, fault("default_profile", "there is no profile %q", clip(defaultProfile, NameBytesMax))
	}
	return r, r.encode()
}

// index fills in the look-up tables.
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
			if _, ok := r.byName[d.ToolName]; !ok {
				r.byName[d.ToolName] = o
			}
			if _, ok := r.byRef[d.ref]; !ok {
				r.byRef[d.ref] = o
			}
		}
	}
}

// encode fixes the registry's bytes and hash.
func (r *Registry) encode() error {
	data, err := codec.Marshal(registryWire{DefaultProfile: r.defaultProfile, Profiles: r.Profiles(), Tools: r.specs})
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	if len(data) > RegistryBytesMax {
		return fault("tools", "the registry takes %d bytes, at most %d", len(data), RegistryBytesMax)
	}
	r.bytes, r.hash = data, codec.Sum(data)
	return nil
}

// checkUnique refuses names that two tools share. A tool's alternates may bear
// its own name.
func checkUnique(tools []tool) *RegistryError {
	ids := make(map[string]int, len(tools))
	names := make(map[string]int, len(tools))
	for i := range tools {
		path := fmt.Sprintf("tools[%d]", i)
		if other, ok := ids[tools[i].spec.ToolID]; ok {
			return fault(path+".tool_id", "%q is that of tools[%d] too", tools[i].spec.ToolID, other)
		}
		ids[tools[i].spec.ToolID] = i
		for v, d := range tools[i].descriptors {
			if other, ok := names[d.ToolName]; ok && other != i {
				return fault(path+variantPath(v)+".tool_name", "%q is that of tools[%d] too", d.ToolName, other)
			}
			names[d.ToolName] = i
		}
	}
	for i := range tools {
		if other, ok := names[tools[i].spec.ToolID]; ok && other != i {
			return fault(fmt.Sprintf("tools[%d].tool_id", i), "%q is the tool_name of tools[%d]: lists could not tell them apart", tools[i].spec.ToolID, other)
		}
	}
	return nil
}

// variantPath returns where a tool's descriptor v stands in its spec.
func variantPath(v int) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf(".alternates[%d]", v-1)
}

// addProfiles checks profiles and resolves their tools.
func (r *Registry) addProfiles(profiles []Profile) *RegistryError {
	if len(profiles) > ProfilesMax {
		return fault("profiles", "%d profiles, at most %d", len(profiles), ProfilesMax)
	}
	names := make(map[string]int, len(profiles))
	for i, p := range profiles {
		path := fmt.Sprintf("profiles[%d]", i)
		if !isName(p.Profile) {
			return fault(path+".profile", "is 1 to %d of A-Za-z0-9_-, not %q", NameBytesMax, clip(p.Profile, NameBytesMax))
		}
		if other, ok := names[p.Profile]; ok {
			return fault(path+".profile", "%q is that of profiles[%d] too", p.Profile, other)
		}
		names[p.Profile] = i
		resolved := profile{name: p.Profile, tools: make([]ToolIndex, 0, len(p.Tools))}
		for j, name := range p.Tools {
			t, ok := r.Lookup(name)
			if !ok {
				return fault(fmt.Sprintf("%s.tools[%d]", path, j), "there is no tool %q", clip(name, ToolIDBytesMax))
			}
			if slices.Contains(resolved.tools, t) {
				return fault(fmt.Sprintf("%s.tools[%d]", path, j), "%q is listed before", name)
			}
			resolved.tools = append(resolved.tools, t)
		}
		r.profiles = append(r.profiles, resolved)
	}
	slices.SortFunc(r.profiles, func(a, b profile) int { return strings.Compare(a.name, b.name) })
	return nil
}
