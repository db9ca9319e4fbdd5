package host

import (
	"context"
	"fmt"
	"sync"
	"weak"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// registries holds each registry that sessions set once, for as long as a
// session in memory has it. Its methods may be called from several goroutines
// at once.
type registries struct {
	mu     sync.Mutex
	byHash map[codec.Hash]weak.Pointer[planner.Registry]
	swept  int // entries that were alive when the dead ones were taken out last
}

// get returns the registry of a hash, nil if none is held.
func (r *registries) get(hash codec.Hash) *planner.Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byHash[hash].Value()
}

// same returns the registry that is held for the hash of reg: reg itself if
// there was none.
func (r *registries) same(reg *planner.Registry) *planner.Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if held := r.byHash[reg.Hash()].Value(); held != nil {
		return held
	}
	if r.byHash == nil {
		r.byHash = map[codec.Hash]weak.Pointer[planner.Registry]{}
	}
	if len(r.byHash) > 2*r.swept+64 {
		for hash, held := range r.byHash {
			if held.Value() == nil {
				delete(r.byHash, hash)
			}
		}
		r.swept = len(r.byHash)
	}
	r.byHash[reg.Hash()] = weak.Make(reg)
	return reg
}

// content finds what the snapshots of one session refer to.
type content struct {
	ctx context.Context
	h   *Host
	sid string
}

// Install returns the parsed install record of a hash.
func (c content) Install(hash codec.Hash) (*session.Install, error) {
	return c.h.installs.Named(c.ctx)(hash)
}

// Registry returns the registry that the session's event at seq set.
func (c content) Registry(seq uint64, hash codec.Hash) (*planner.Registry, error) {
	if held := c.h.registries.get(hash); held != nil {
		return held, nil
	}
	for e, err := range c.h.world.ReadSession(c.ctx, c.sid, seq, seq, true) {
		if err != nil {
			return nil, fmt.Errorf("read event %d of %s: %w", seq, c.sid, err)
		}
		reg, err := session.ParseRegistrySet(e)
		if err != nil {
			return nil, err
		}
		return c.h.registries.same(reg), nil
	}
	return nil, fmt.Errorf("the log has no event %d of %s", seq, c.sid)
}

// putDescriptors stores what the tools of a registry look like to a model:
// model bridges fetch descriptors by hash.
func putDescriptors(ctx context.Context, w world, registry *planner.Registry) error {
	for _, blob := range registry.Blobs() {
		if _, err := w.PutBlob(ctx, blob.Content); err != nil {
			return fmt.Errorf("store descriptor %s: %w", blob.Ref, err)
		}
	}
	return nil
}
