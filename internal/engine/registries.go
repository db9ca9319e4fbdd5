package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// idleBytesMax is how many bytes of registries that no session in memory has are
// held, for a session that comes back or sets an equal one.
const idleBytesMax = 4 << 20

// registries holds each registry that sessions set once. Its methods may be called
// from several goroutines at once.
type registries struct {
	mu     sync.Mutex
	byHash map[codec.Hash]*heldRegistry
	idle   int // bytes of those that no lane has
}

type heldRegistry struct {
	registry *planner.Registry
	lanes    int  // that have sessions with it in memory
	stored   bool // this process has stored its descriptors
}

// get returns the registry of a hash, nil if none is held.
func (r *registries) get(hash codec.Hash) *planner.Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if held := r.byHash[hash]; held != nil {
		return held.registry
	}
	return nil
}

// same returns the registry that is held for the hash of reg: reg itself if
// there was none.
func (r *registries) same(reg *planner.Registry) *planner.Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held(reg).registry
}

// held returns what is held for the hash of reg.
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

// isIdle counts a registry that no lane has. Too many of them are forgotten.
func (r *registries) isIdle(reg *planner.Registry) {
	if r.idle += reg.Weight(); r.idle <= idleBytesMax {
		return
	}
	r.idle = reg.Weight()
	maps.DeleteFunc(r.byHash, func(hash codec.Hash, held *heldRegistry) bool { return held.lanes == 0 && hash != reg.Hash() })
}

// hold says that a lane has sessions with a registry now.
func (r *registries) hold(reg *planner.Registry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := r.held(reg)
	if held.lanes++; held.lanes == 1 {
		r.idle -= held.registry.Weight()
	}
}

// letGo says that a lane has none any more.
func (r *registries) letGo(hash codec.Hash) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := r.byHash[hash]
	if held.lanes--; held.lanes == 0 {
		r.isIdle(held.registry)
	}
}

// heldWeight says how many of a lane's sessions hold a registry, and what it
// takes.
type heldWeight struct{ sessions, bytes int }

// weighRegistries counts the registries that a session holds now instead of
// those that it held when it was weighed last. The install record's is not
// counted: it stays, whoever leaves.
func (l *Lane) weighRegistries(s *actor) {
	var room [4]*planner.Registry
	now := room[:0]
	if s.state != nil {
		s.state.ShareRegistries(func(r *planner.Registry) *planner.Registry {
			now = append(now, r)
			return r
		})
	}
	if slices.Equal(now, s.registries) {
		return
	}
	for _, r := range now {
		l.hold(r)
	}
	for _, r := range s.registries {
		l.letGoOf(r)
	}
	s.registries = slices.Clone(now)
}

// hold counts a session more that has a registry; nil is none.
func (l *Lane) hold(r *planner.Registry) {
	if r == nil {
		return
	}
	held, known := l.weights[r.Hash()]
	if !known {
		held.bytes = r.Weight()
		l.bytes += held.bytes
		l.host.registries.hold(r)
	}
	held.sessions++
	l.weights[r.Hash()] = held
}

// letGoOf counts a session less that has a registry; nil is none.
func (l *Lane) letGoOf(r *planner.Registry) {
	if r == nil {
		return
	}
	held := l.weights[r.Hash()]
	if held.sessions--; held.sessions > 0 {
		l.weights[r.Hash()] = held
		return
	}
	delete(l.weights, r.Hash())
	l.bytes -= held.bytes
	l.host.registries.letGo(r.Hash())
}

// isStored reports whether this process has stored the descriptors of reg.
func (r *registries) isStored(reg *planner.Registry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := r.byHash[reg.Hash()]
	return held != nil && held.stored
}

// setStored takes the descriptors of reg as stored.
func (r *registries) setStored(reg *planner.Registry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if held := r.byHash[reg.Hash()]; held != nil {
		held.stored = true
	}
}

// errUnread says that the log could not be read: of what it holds nothing is
// known.
var errUnread = errors.New("the log was not read")

// content finds what the snapshots of one session refer to.
type content struct {
	ctx context.Context
	h   *Host
	sid string
}

// Install returns the parsed install record of a hash.
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
	for e, err := range c.h.world.ReadSession(c.ctx, c.sid, seq, seq, true) {
		if err != nil {
			return nil, fmt.Errorf("%w: event %d of %s: %w", errUnread, seq, c.sid, err)
		}
		reg, err := session.ParseRegistrySet(e)
		if err != nil {
			return nil, err
		}
		return c.h.registries.same(reg), nil
	}
	return nil, fmt.Errorf("the log has no event %d of %s", seq, c.sid)
}

// Space returns the manifest that the session's event at seq holds.
func (c content) Space(seq uint64, hash codec.Hash) (*space.Manifest, error) {
	for e, err := range c.h.world.ReadSession(c.ctx, c.sid, seq, seq, true) {
		if err != nil {
			return nil, fmt.Errorf("%w: event %d of %s: %w", errUnread, seq, c.sid, err)
		}
		m, found, err := session.ParseSnapshotReady(e)
		if err == nil && found != hash {
			err = fmt.Errorf("event %d of %s holds manifest %s", seq, c.sid, found)
		}
		return m, err
	}
	return nil, fmt.Errorf("the log has no event %d of %s", seq, c.sid)
}

// putting is how many descriptors are stored at once: a registry may have
// hundreds, and its lane waits for them.
const putting = 16

// putDescriptors stores what the tools of a registry look like to a model:
// model bridges fetch descriptors by hash.
func putDescriptors(ctx context.Context, w World, registry *planner.Registry) error {
	blobs := registry.Blobs()
	failures := make([]error, len(blobs))
	room := make(chan struct{}, putting)
	var storing sync.WaitGroup
	for i := range blobs {
		room <- struct{}{}
		storing.Go(func() {
			defer func() { <-room }()
			if _, err := w.PutBlob(ctx, blobs[i].Content); err != nil {
				failures[i] = fmt.Errorf("store descriptor %s: %w", blobs[i].Ref, err)
			}
		})
	}
	storing.Wait()
	for _, err := range failures {
		if err != nil {
			return err // one says enough: all of it is tried again
		}
	}
	return nil
}
