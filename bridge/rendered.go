package bridge

import (
	"sync"

	"github.com/refold/refold/codec"
)

// RenderTools returns Tools in the form that a provider takes, as render makes
// it of them. It is kept: for each toolset a provider's bridge renders once, not
// every turn, also if many turns begin at once, and until so much else was
// rendered that it is forgotten. What render returns must follow from the tools
// alone; form names it, so that different forms are kept beside each other. The
// result is shared and must not be changed. An error of render is returned, and
// nothing is kept. A Request that no bridge made keeps nothing.
func (r Request) RenderTools(form string, render func(tools []Tool) ([]byte, error)) ([]byte, error) {
	if r.rendered == nil || r.asked.Toolset.IsZero() { // it is not said: then nothing is known to be the same
		return render(r.Tools)
	}
	return r.render(form, r.asked.Toolset, r.Tools, render)
}

// RenderDefined is RenderTools for the tools to define: Defined, or Tools if
// that is nil.
func (r Request) RenderDefined(form string, render func(tools []Tool) ([]byte, error)) ([]byte, error) {
	switch {
	case r.Defined == nil:
		return r.RenderTools(form, render)
	case r.rendered == nil:
		return render(r.Defined)
	}
	hashes := make([]byte, 0, len(r.asked.Defined)*len(codec.Hash{}))
	for i := range r.asked.Defined {
		hashes = append(hashes, r.asked.Defined[i][:]...)
	}
	return r.render(form, codec.Digest(hashes), r.Defined, render)
}

func (r Request) render(form string, toolset codec.Hash, tools []Tool, render func(tools []Tool) ([]byte, error)) ([]byte, error) {
	key := renderKey{provider: r.asked.Provider, form: form, toolset: toolset}
	return r.rendered.get(key, func() ([]byte, error) { return render(tools) })
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
	cache *cache[renderKey, []byte]

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
	return &renderings{cache: newCache[renderKey, []byte](bytesMax), working: make(map[renderKey]*rendering)}
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
	if value, ok := r.cache.get(key); ok {
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
	r.cache.put(key, value, renderedFixedBytes+len(key.provider)+len(key.form)+len(value))
	return value, nil
}

// stats counts as misses what was rendered, or tried.
func (r *renderings) stats() CacheStats { return r.cache.stats() }
