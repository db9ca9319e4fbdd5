package planner

import (
	_ "embed"
	"fmt"

	"github.com/refold/refold/codec"
)

// builtinJSON holds the built-in tools and profiles as an install record has
// them.
//
//go:embed builtin.json
var builtinJSON []byte

// Defaults are the parts of an install record that define a registry.
type Defaults struct {
	// A profile of this registry, for runs whose provider is not in profile_by_provider.
	// Without it these runs have all tools.
	DefaultProfile string `msgpack:"default_profile,omitempty" lim:"@token"`
	// Provider to profile of this registry, for its runs. Providers are compared without
	// regard to case; each is listed once.
	ProfileByProvider codec.Pairs `msgpack:"profile_by_provider,omitempty" lim:"..ProfilesMax,key=@token,value=@token"`
	// Lists of tools by name. They replace all earlier profiles, as tools does.
	Profiles []Profile `msgpack:"profiles,omitempty" lim:"..ProfilesMax"`
	// The registry.
	Tools []ToolSpec `msgpack:"tools" lim:"..ToolsMax"`
}

// Registry validates d. The error is a *RegistryError.
func (d Defaults) Registry() (*Registry, error) {
	return NewRegistry(d.Tools, d.Profiles, d.DefaultProfile, d.ProfileByProvider)
}

// Builtin returns the built-in tools and profiles, which an install record has
// unless it names others. The caller owns the result.
func Builtin() Defaults {
	raw, err := codec.FromJSON(builtinJSON)
	if err != nil {
		panic(fmt.Sprintf("planner: builtin.json: %v", err))
	}
	var d Defaults
	if err := codec.Unmarshal(raw, &d); err != nil {
		panic(fmt.Sprintf("planner: builtin.json: %v", err))
	}
	return d
}
