package session_test

import (
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// shelf is what tests restore from: one install record, and the registries of
// a history.
type shelf struct {
	install    *session.Install
	registries []*planner.Registry
	manifests  []*space.Manifest
	gone       error // why there is no install record
}

// given returns a shelf with an install record alone.
func given(install *session.Install) shelf { return shelf{install: install} }

func (s shelf) Install(codec.Hash) (*session.Install, error) { return s.install, s.gone }

func (s shelf) Registry(seq uint64, hash codec.Hash) (*planner.Registry, error) {
	for _, r := range s.registries {
		if r.Hash() == hash {
			return r, nil
		}
	}
	return nil, fmt.Errorf("event %d set no registry %s that is at hand", seq, hash)
}

func (s shelf) Space(seq uint64, hash codec.Hash) (*space.Manifest, error) {
	for _, m := range s.manifests {
		if m.Hash() == hash {
			return m, nil
		}
	}
	return nil, fmt.Errorf("event %d holds no manifest %s that is at hand", seq, hash)
}
