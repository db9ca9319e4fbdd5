package worker

import (
	"container/list"
	"sync"
)

// cache keeps what was read, up to a number of bytes; what was not used for
// longest goes first.
type cache[K comparable, V any] struct {
	bytesMax int

	mu           sync.Mutex
	bytes        int
	hits, misses uint64
	order        *list.List // of *cached[K, V]; the latest used first
	at           map[K]*list.Element
}

type cached[K comparable, V any] struct {
	key   K
	value V
	bytes int
}

func newCache[K comparable, V any](bytesMax int) *cache[K, V] {
	return &cache[K, V]{bytesMax: bytesMax, order: list.New(), at: make(map[K]*list.Element)}
}

// get returns what is kept under key. The caller must not change it.
func (c *cache[K, V]) get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.at[key]
	if !ok {
		c.misses++
		return value, false
	}
	c.hits++
	c.order.MoveToFront(e)
	return e.Value.(*cached[K, V]).value, true
}

// hit counts one that was answered beside the cache.
func (c *cache[K, V]) hit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hits++
}

// cacheCounts are what a cache was good for.
type cacheCounts struct {
	Hits, Misses   uint64
	Entries, Bytes int
}

// counts returns the counts. What was too large to be kept is a miss each time.
func (c *cache[K, V]) counts() cacheCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cacheCounts{Hits: c.hits, Misses: c.misses, Entries: len(c.at), Bytes: c.bytes}
}

// put keeps value, which takes about so many bytes. What is larger than a
// quarter of the cache is not kept: it would drive out all else.
func (c *cache[K, V]) put(key K, value V, bytes int) {
	if bytes > c.bytesMax/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.at[key]; ok {
		return
	}
	c.at[key] = c.order.PushFront(&cached[K, V]{key: key, value: value, bytes: bytes})
	c.bytes += bytes
	for c.bytes > c.bytesMax {
		oldest := c.order.Back()
		old := oldest.Value.(*cached[K, V])
		c.order.Remove(oldest)
		delete(c.at, old.key)
		c.bytes -= old.bytes
	}
}

// clear forgets everything.
func (c *cache[K, V]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order.Init()
	clear(c.at)
	c.bytes = 0
}
