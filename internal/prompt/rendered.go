package prompt

import (
	"sync"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// renderings keeps tools as providers take them.
type renderings struct {
	mu    sync.Mutex // held while one is made: others wait for it, and find it
	cache *Cache[renderKey, []byte]
}

// renderKey names what was rendered. toolset stands for the descriptors of the
// tools and their order.
type renderKey struct {
	provider string
	form     string
	toolset  codec.Hash
}

// get returns what is kept under key, or what render makes. If render fails or
// panics, the next caller tries itself. render must not call get.
func (r *renderings) get(key renderKey, render func() ([]byte, error)) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if value, ok := r.cache.Get(key); ok {
		return value, nil
	}
	value, err := render()
	if err == nil {
		r.cache.Put(key, value, renderedFixedBytes+len(key.provider)+len(key.form)+len(value))
	}
	return value, err
}

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
	case toolset.IsZero(): // nothing is known to be the same
		return render()
	}
	return t.kept.get(renderKey{provider: t.of.Provider, form: form, toolset: toolset}, render)
}
