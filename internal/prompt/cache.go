package prompt

import (
	"container/list"
	"sync"
)

// Cache is a least-recently-used cache, bounded by bytes.
type Cache[K comparable, V any] struct {
	bytesMax int

	mu           sync.Mutex
	bytes        int
	hits, misses uint64
	order        *list.List // of *cached[K, V]; the most recently used first
	at           map[K]*list.Element
}

type cached[K comparable, V any] struct {
	key   K
	value V
	bytes int
}

// NewCache returns an empty cache of at most bytesMax bytes.
func NewCache[K comparable, V any](bytesMax int) *Cache[K, V] {
	return &Cache[K, V]{bytesMax: bytesMax, order: list.New(), at: make(map[K]*list.Element)}
}

// Get returns the value of key. The caller must not change it.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
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

// CacheCounts are the counts of one cache.
type CacheCounts struct {
	Hits, Misses   uint64
	Entries, Bytes int
}

// counts returns the counts. A value too large to be kept is a miss each time.
func (c *Cache[K, V]) counts() CacheCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheCounts{Hits: c.hits, Misses: c.misses, Entries: len(c.at), Bytes: c.bytes}
}

// Put adds a value of about bytes bytes. One larger than a quarter of the cache
// is not kept: it would evict all others.
func (c *Cache[K, V]) Put(key K, value V, bytes int) {
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

func (c *Cache[K, V]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order.Init()
	clear(c.at)
	c.bytes = 0
}
