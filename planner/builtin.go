package planner

import (
	_ "embed"
	"fmt"

	"github.com/refold/refold/codec"
)

// builtinJSON holds the built-in tools and profiles in the form that an
// install record has them.
//
//go:embed builtin.json
var builtinJSON []byte

// Defaults are the parts of an install record that make a registry.
type Defaults struct {
	DefaultProfile string     `msgpack:"default_profile,omitempty"`
	Profiles       []Profile  `msgpack:"profiles,omitempty"`
	Tools          []ToolSpec `msgpack:"tools"`
}

// Registry validates d. The error is a *RegistryError.
func (d Defaults) Registry() (*Registry, error) {
	return NewRegistry(d.Tools, d.Profiles, d.DefaultProfile)
}

// Builtin returns the built-in tools and profiles: what an install record that
// says nothing else has. It names no default profile, so that a run's provider
// decides: see ResolveProfile. The caller owns the result.
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
