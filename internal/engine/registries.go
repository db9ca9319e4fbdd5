package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// idleBytesMax bounds the registries that no session in memory uses. They are kept
// for a session that is loaded again or sets an equal one.
const idleBytesMax = 4 << 20

// registries holds one copy of each registry that sessions set. Its methods may be
// called concurrently.
type registries struct {
	mu     sync.Mutex
	byHash map[codec.Hash]*heldRegistry
	idle   int          // of registries that no session in memory uses
	used   atomic.Int64 // bytes of the others
}

type heldRegistry struct {
	registry *planner.Registry
	holders  int // uses by sessions in memory
}

func (r *registries) get(hash codec.Hash) *planner.Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if held := r.byHash[hash]; held != nil {
		return held.registry
	}
	return nil
}

// same returns the registry that is held for the hash of reg. If there is none, it
// holds and returns reg.
func (r *registries) same(reg *planner.Registry) *planner.Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held(reg).registry
}

// held returns the entry for the hash of reg, and adds one if there is none.
func (r *registries) held(reg *planner.Registry) *heldRegistry {
	if held := r.byHash[reg.Hash()]; held != nil {
		return held
	}
	r.isIdle(reg)
	if r.byHash == nil {
		r.byHash = map[codec.Hash]*heldRegistry{}
	}
	held := &heldRegistry{registry: reg}
	r.byHash[reg.Hash()] = held
	return held
}

// isIdle counts a registry that no session uses. When there are too many, the
// others are dropped.
func (r *registries) isIdle(reg *planner.Registry) {
	if r.idle += reg.Weight(); r.idle <= idleBytesMax {
		return
	}
	r.idle = reg.Weight()
	maps.DeleteFunc(r.byHash, func(hash codec.Hash, held *heldRegistry) bool { return held.holders == 0 && hash != reg.Hash() })
}

// retain counts a use of each registry by a session in memory.
func (r *registries) retain(all ...*planner.Registry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reg := range all {
		held := r.held(reg)
		if held.holders++; held.holders == 1 {
			r.idle -= reg.Weight()
			r.used.Add(int64(reg.Weight()))
		}
	}
}

// release ends a use that retain counted.
func (r *registries) release(all ...*planner.Registry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, reg := range all {
		held := r.byHash[reg.Hash()]
		if held.holders--; held.holders == 0 {
			r.used.Add(-int64(reg.Weight()))
			r.isIdle(held.registry)
		}
	}
}

// errUnread reports that the log could not be read, so that its content is unknown.
var errUnread = errors.New("the log was not read")

// content resolves what one session's snapshot refers to.
type content struct {
	ctx context.Context
	h   *Host
	sid string
}

// Install returns the install record with a hash.
func (c content) Install(hash codec.Hash) (*session.Install, error) {
	install, err := c.h.installs.Named(c.ctx)(hash)
	if err != nil && !errors.Is(err, journal.ErrNoInstall) {
		return nil, fmt.Errorf("%w: %w", errUnread, err)
	}
	return install, err
}

// Registry returns the registry that the session's event at seq set.
func (c content) Registry(seq uint64, hash codec.Hash) (*planner.Registry, error) {
	if held := c.h.registries.get(hash); held != nil {
		return held, nil
	}
	e, err := c.event(seq)
	if err != nil {
		return nil, err
	}
	reg, err := session.ParseRegistrySet(e)
	if err != nil {
		return nil, err
	}
	return c.h.registries.same(reg), nil
}

// Space returns the manifest in the session's event at seq.
func (c content) Space(seq uint64, hash codec.Hash) (*space.Manifest, error) {
	e, err := c.event(seq)
	if err != nil {
		return nil, err
	}
	m, found, err := session.ParseSnapshotReady(e)
	if err == nil && found != hash {
		err = fmt.Errorf("event %d of %s holds manifest %s", seq, c.sid, found)
	}
	return m, err
}

func (c content) event(seq uint64) (session.Event, error) {
	for e, err := range c.h.world.ReadSession(c.ctx, c.sid, seq, seq, true) {
		if err != nil {
			err = fmt.Errorf("%w: event %d of %s: %w", errUnread, seq, c.sid, err)
		}
		return e, err
	}
	return session.Event{}, fmt.Errorf("the log has no event %d of %s", seq, c.sid)
}

// putDescriptors stores the descriptors of a registry's tools that are not stored. Model
// bridges fetch them by hash.
func putDescriptors(ctx context.Context, w World, registry *planner.Registry) error {
	blobs := registry.Blobs()
	contents := make([][]byte, len(blobs))
	for i := range blobs {
		contents[i] = blobs[i].Content
	}
	if err := w.PutBlobs(ctx, contents); err != nil {
		return fmt.Errorf("store descriptors: %w", err)
	}
	return nil
}
