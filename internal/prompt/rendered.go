package prompt

import (
	"sync"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// requestTools are the tools of one request, by what their renderings are kept
// under.
type requestTools struct {
	kept *renderings
	of   *session.Generation
}

// Rendered implements executor.Renderings.
func (t *requestTools) Rendered(form string, defined bool, render func() ([]byte, error)) ([]byte, error) {
	toolset := t.of.Toolset
	switch {
	case defined:
		hashes := make([]byte, 0, len(t.of.Defined)*len(codec.Hash{}))
		for i := range t.of.Defined {
			hashes = append(hashes, t.of.Defined[i][:]...)
		}
		toolset = codec.Digest(hashes)
	case toolset.IsZero(): // it is not said: then nothing is known to be the same
		return render()
	}
	return t.kept.get(renderKey{provider: t.of.Provider, form: form, toolset: toolset}, render)
}

// renderKey names what was rendered. toolset stands for the descriptors of the
// tools and their order.
type renderKey struct {
	provider string
	form     string
	toolset  codec.Hash
}

// renderings keeps tools as providers take them.
type renderings struct {
	cache *Cache[renderKey, []byte]

	mu      sync.Mutex
	working map[renderKey]*rendering
}

// rendering is one that is being made.
type rendering struct {
	done  chan struct{} // closed in the end
	value []byte
	ok    bool // value is good: else it failed, or panicked
}

func newRenderings(bytesMax int) *renderings {
	return &renderings{cache: NewCache[renderKey, []byte](bytesMax), working: make(map[renderKey]*rendering)}
}

// get returns what is kept under key, or what render makes. While one renders,
// others with the same key wait for that; if it fails, each tries itself.
func (r *renderings) get(key renderKey, render func() ([]byte, error)) ([]byte, error) {
	for {
		r.mu.Lock()
		other := r.working[key]
		if other == nil {
			break
		}
		r.mu.Unlock()
		<-other.done
		if other.ok {
			r.cache.hit()
			return other.value, nil
		}
	}
	if value, ok := r.cache.Get(key); ok {
		r.mu.Unlock()
		return value, nil
	}
	own := &rendering{done: make(chan struct{})}
	r.working[key] = own
	r.mu.Unlock()
	defer func() { // render may panic
		r.mu.Lock()
		delete(r.working, key)
		r.mu.Unlock()
		close(own.done)
	}()
	value, err := render()
	if err != nil {
		return nil, err
	}
	own.value, own.ok = value, true
	r.cache.Put(key, value, renderedFixedBytes+len(key.provider)+len(key.form)+len(value))
	return value, nil
}

// counts counts as misses what was rendered, or tried.
func (r *renderings) counts() CacheCounts { return r.cache.counts() }
