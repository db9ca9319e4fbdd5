package planner

import (
	"fmt"

	"github.com/refold/refold/codec"
)

// ParseRegistry reads what Bytes wrote. It fails with a RegistryError or the
// codec's error.
func ParseRegistry(data []byte) (*Registry, error) {
	var wire registryWire
	if err := codec.Unmarshal(data, &wire); err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	return NewRegistry(wire.Tools, wire.Profiles, wire.DefaultProfile, wire.ProfileByProvider)
}
