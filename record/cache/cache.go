// Package cache provides a map whose size in bytes is limited.
package cache

import (
	"hash/maphash"
	"sync"
)

// Cache is a map whose size in bytes is limited. It is safe for concurrent use. It has several parts, and the hash of
// a key selects its part, so that callers seldom wait for each other.
//
// Each part has a young and an old half. New keys are added to the young half, and a key of the old half is copied to
// the young half when it is looked up. When the young half is full, it replaces the old half. So recently used keys
// stay in the cache, although no list of keys is sorted by time.
type Cache[K comparable, V any] struct {
	size  func(K) int // returns the size of a key and its value in bytes
	seed  maphash.Seed
	limit int // maximum size of a half of a part, in bytes
	parts [parts]part[K, V]
}

const parts = 16

type part[K comparable, V any] struct {
	mu         sync.Mutex // guards the following fields
	young, old map[K]V
	bytes      int // size of young, in bytes
}

// New makes a Cache of at most the given size. size returns the size of a key and its value in
// bytes.
func New[K comparable, V any](bytes int64, size func(K) int) *Cache[K, V] {
	return &Cache[K, V]{size: size, seed: maphash.MakeSeed(), limit: int(bytes / parts / 2)}
}

func (c *Cache[K, V]) part(key K) *part[K, V] {
	return &c.parts[maphash.Comparable(c.seed, key)%parts]
}

// Get returns the value of a key, and whether there is one.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	p := c.part(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if v, ok := p.young[key]; ok {
		return v, true
	}
	v, ok := p.old[key]
	if ok {
		p.put(key, v, c.size(key), c.limit)
	}
	return v, ok
}

// Put sets the value of a key.
func (c *Cache[K, V]) Put(key K, v V) {
	p := c.part(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.put(key, v, c.size(key), c.limit)
}

// Update replaces the value of a key by the result of change. The function change gets the present value, or the zero
// value if the key has no value. No other call changes the value while change runs.
func (c *Cache[K, V]) Update(key K, change func(V) V) {
	p := c.part(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.young[key]
	if !ok {
		v = p.old[key]
	}
	p.put(key, change(v), c.size(key), c.limit)
}

func (p *part[K, V]) put(key K, v V, size, limit int) {
	if _, ok := p.young[key]; !ok {
		p.bytes += size
		if p.young == nil || p.bytes > limit {
			p.old, p.young, p.bytes = p.young, map[K]V{}, size
		}
	}
	p.young[key] = v
}

// Count returns the number of entries. A key that is in both halves counts twice.
func (c *Cache[K, V]) Count() (entries int) {
	for i := range c.parts {
		p := &c.parts[i]
		p.mu.Lock()
		entries += len(p.young) + len(p.old)
		p.mu.Unlock()
	}
	return entries
}
