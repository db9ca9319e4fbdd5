package prompt

import (
	"sync"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// renderings caches tools in the form of their provider.
type renderings struct {
	mu    sync.Mutex // held during render, so that concurrent callers share one result
	cache *Cache[renderKey, []byte]
}

// renderKey names a rendering. toolset is a hash of the tools' descriptors and
// their order.
type renderKey struct {
	provider string
	form     string
	toolset  codec.Hash
}

// get returns the cached rendering, or calls render and caches its result. If
// render fails or panics, the next caller tries again. render must not call get.
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

// requestTools implements executor.Renderings for one request.
type requestTools struct {
	cache *renderings
	of    *session.Generation
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
	case toolset.IsZero(): // no key to cache it under
		return render()
	}
	return t.cache.get(renderKey{provider: t.of.Provider, form: form, toolset: toolset}, render)
}
