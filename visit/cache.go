package visit

import (
	"hash/maphash"
	"sync"
)

// cache is a map bounded in bytes. It is safe for concurrent use; its parts, chosen by the key's hash, keep callers from
// waiting for each other.
//
// Each part has two halves: what is asked for in the old one moves into the young one, and when that is full, the old
// one goes. So what is asked for stays, and nothing has to be sorted by time.
type cache[K comparable, V any] struct {
	size  func(K) int // bytes that a key and its value take
	seed  maphash.Seed
	limit int // bytes of one half of one part
	parts [cacheParts]cachePart[K, V]
}

const cacheParts = 16

type cachePart[K comparable, V any] struct {
	mu         sync.Mutex // guards what follows
	young, old map[K]V
	bytes      int // of young
}

func newCache[K comparable, V any](bytes int64, size func(K) int) *cache[K, V] {
	return &cache[K, V]{size: size, seed: maphash.MakeSeed(), limit: int(bytes / cacheParts / 2)}
}

func (c *cache[K, V]) part(key K) *cachePart[K, V] {
	return &c.parts[maphash.Comparable(c.seed, key)%cacheParts]
}

func (c *cache[K, V]) get(key K) (V, bool) {
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

func (c *cache[K, V]) put(key K, v V) {
	p := c.part(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.put(key, v, c.size(key), c.limit)
}

// update replaces the value of a key, zero where there is none, by what change makes of it; nobody comes between.
func (c *cache[K, V]) update(key K, change func(V) V) {
	p := c.part(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.young[key]
	if !ok {
		v = p.old[key]
	}
	p.put(key, change(v), c.size(key), c.limit)
}

func (p *cachePart[K, V]) put(key K, v V, size, limit int) {
	if _, ok := p.young[key]; !ok {
		if p.bytes += size; p.young == nil || p.bytes > limit {
			p.old, p.young, p.bytes = p.young, map[K]V{}, size
		}
	}
	p.young[key] = v
}

// count is how many entries are held; one that is in both halves counts twice.
func (c *cache[K, V]) count() (entries int) {
	for i := range c.parts {
		p := &c.parts[i]
		p.mu.Lock()
		entries += len(p.young) + len(p.old)
		p.mu.Unlock()
	}
	return entries
}
