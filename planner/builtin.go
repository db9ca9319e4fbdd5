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
	DefaultProfile    string      `msgpack:"default_profile,omitempty"`
	ProfileByProvider codec.Pairs `msgpack:"profile_by_provider,omitempty"` // a provider's name to that of a profile
	Profiles          []Profile   `msgpack:"profiles,omitempty"`
	Tools             []ToolSpec  `msgpack:"tools"`
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
