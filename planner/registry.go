package planner

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/refold/refold/codec"
)

// Registry is a validated, immutable set of tools and profiles. It may be
// shared between sessions and is safe for concurrent use.
type Registry struct {
	tools          []tool // by tool_id
	specs          []ToolSpec
	profiles       []profile // by name
	defaultProfile string
	byProvider     []providerProfile // by provider
	asksCalls      bool
	byID           map[string]ToolIndex
	byName         map[string]offered
	byRef          map[codec.Ref]offered
	room           registryRoom // the size of its tools and conditions
	layers         []layer      // lowest first; nil: not composed
	bytes          []byte
	hash           codec.Hash
}

// ToolIndex is a tool's position in Registry.Tools. It means nothing without
// its registry.
type ToolIndex int

// NoTool is the index of a call whose name the registry doesn't have.
const NoTool ToolIndex = -1

// tool is a spec with everything that is computed from it once.
type tool struct {
	spec        ToolSpec
	template    template
	approval    *when        // nil: never or always
	layer       int          // the layer that it came with, from 1; 0: the registry itself
	descriptors []descriptor // the spec's own, then its alternates
}

// descriptor is a Descriptor with its bytes, its name, and its schema.
type descriptor struct {
	Descriptor
	bytes  []byte
	ref    codec.Ref
	schema *schema

	// reworded: a layer made it. Calls under it must fit the tool's own schema
	// too, so that words narrow what is accepted and never widen it.
	reworded bool

	line string // in a fingerprint: tool_id and ref; neither can hold a space or a newline
}

// profile is a Profile with its tools resolved and its step rules compiled.
type profile struct {
	name  string
	tools []offered
	steps *Steps
}

// offered is a tool with one of its descriptors.
type offered struct {
	tool    ToolIndex
	variant int
}

// registryWire is a registry's canonical form.
type registryWire struct {
	DefaultProfile    string      `msgpack:"default_profile,omitempty"`
	Layers            []layer     `msgpack:"layers,omitempty"`
	ProfileByProvider codec.Pairs `msgpack:"profile_by_provider,omitempty"`
	Profiles          []Profile   `msgpack:"profiles"`
	Tools             []ToolSpec  `msgpack:"tools"`
}

// RegistryError says which part of a registry is wrong. Path refers to the
// input as it was given: tools[3].tool_name.
type RegistryError struct {
	Path   string
	Detail string
}

// Error returns the path and what is wrong there.
func (e *RegistryError) Error() string { return e.Path + ": " + e.Detail }

func fault(path, format string, args ...any) *RegistryError {
	return &RegistryError{Path: path, Detail: fmt.Sprintf(format, args...)}
}

// Bytes returns the canonical bytes: equal for equal registries, in whatever
// order their tools and profiles were given. The caller must not change them.
func (r *Registry) Bytes() []byte { return r.bytes }

// Hash returns the SHA-256 of Bytes.
func (r *Registry) Hash() codec.Hash { return r.hash }

// Len returns how many tools there are.
func (r *Registry) Len() int { return len(r.tools) }

// Tools returns all tools by tool_id, with defaults filled in. The caller must
// not change them.
func (r *Registry) Tools() []ToolSpec { return r.specs }

// Tool returns one tool. It panics if the index is not of this registry.
func (r *Registry) Tool(t ToolIndex) *ToolSpec { return &r.specs[t] }

// Lookup finds a tool by tool_id or by tool_name.
func (r *Registry) Lookup(name string) (ToolIndex, bool) {
	if t, ok := r.byID[name]; ok {
		return t, true
	}
	if o, ok := r.byName[name]; ok {
		return o.tool, true
	}
	return NoTool, false
}

// LookupID finds a tool by tool_id alone.
func (r *Registry) LookupID(id string) (ToolIndex, bool) {
	t, ok := r.byID[id]
	return t, ok
}

// LookupRef finds the tool that a descriptor belongs to, alternates included.
func (r *Registry) LookupRef(ref codec.Ref) (ToolIndex, bool) {
	if o, ok := r.byRef[ref]; ok {
		return o.tool, true
	}
	return NoTool, false
}

// Descriptor returns a tool's own descriptor.
func (r *Registry) Descriptor(t ToolIndex) Descriptor { return r.tools[t].descriptors[0].Descriptor }

// DescriptorBytes returns the content that Ref names: the descriptor as JSON
// with sorted keys, the same for every provider. The caller must not change it.
func (r *Registry) DescriptorBytes(t ToolIndex) []byte { return r.tools[t].descriptors[0].bytes }

// Ref returns the name of the descriptor's content.
func (r *Registry) Ref(t ToolIndex) codec.Ref { return r.tools[t].descriptors[0].ref }

// Blob is a descriptor's content under its name.
type Blob struct {
	Ref     codec.Ref
	Content []byte
}

// Blobs returns every descriptor of the registry, alternates included, by tool.
// They must be stored before an effect names them.
func (r *Registry) Blobs() []Blob {
	var blobs []Blob
	for i := range r.tools {
		for _, d := range r.tools[i].descriptors {
			blobs = append(blobs, Blob{Ref: d.ref, Content: d.bytes})
		}
	}
	return blobs
}

// Profiles returns all profiles by name. They list tools by tool_id, or an
// alternate of a tool by its Ref; their step rules are as given. The caller
// owns the result.
func (r *Registry) Profiles() []Profile {
	out := make([]Profile, len(r.profiles))
	for i, p := range r.profiles {
		out[i] = Profile{Profile: p.name, Steps: p.steps.rules(), Tools: make([]string, len(p.tools))}
		for j, o := range p.tools {
			out[i].Tools[j] = r.specs[o.tool].ToolID
			if o.variant > 0 {
				out[i].Tools[j] = r.tools[o.tool].descriptors[o.variant].ref.String()
			}
		}
	}
	return out
}

// DefaultProfile returns the profile of sessions that select none, or "".
func (r *Registry) DefaultProfile() string { return r.defaultProfile }

// HasProfile reports whether there is a profile of that name.
func (r *Registry) HasProfile(name string) bool {
	_, ok := r.profile(name)
	return ok
}

// ProfileSteps returns the step rules of a profile, or nil if there are none or
// no such profile.
func (r *Registry) ProfileSteps(profile string) *Steps {
	p, ok := r.profile(profile)
	if !ok {
		return nil
	}
	return p.steps
}

// AsksCalls reports whether rules of any profile read the calls of the last
// step.
func (r *Registry) AsksCalls() bool { return r.asksCalls }

func (r *Registry) profile(name string) (*profile, bool) {
	i, ok := slices.BinarySearchFunc(r.profiles, name, func(p profile, name string) int { return cmp.Compare(p.name, name) })
	if !ok {
		return nil, false
	}
	return &r.profiles[i], true
}
