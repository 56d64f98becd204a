// Package bloom is a Bloom filter: it reports for a key either "certainly new" or "maybe seen".
//
// # Guarantees
//
// Errors are always in the direction of "maybe". Once Add(k) has returned, Has(k) is true for ever,
// in every goroutine. A key that was never added gets "maybe" with a probability of at most
// Config.Error. A filter whose memory is used up does not exceed this probability silently: it
// becomes saturated, and returns "maybe" for every key.
//
// Any number of goroutines may call Has and Add. Has takes no lock, and Add takes one only while
// the filter grows, which takes microseconds. Keys are never removed.
//
// # Parameters
//
// A key sets 1 to 6 bits in each of several 64-bit words. There are four words per key, or seven if the memory is
// tight or the error very small. Each word is one cache line to fetch, and all lines are fetched concurrently, so
// they cost about as much as one line. A textbook filter places every bit independently. This filter places several
// bits in the same word, so it needs 2 % to 4 % more memory for the same error. But there is an exact formula for the
// error, from which sizes are computed: see shape.wordPasses. Filter.Stats instead estimates the error from the
// memory itself. From a sample of words it computes the mean probability that a new key finds its bits set in a word.
// It raises this probability to the power of the number of words per key.
//
// # Growth
//
// A filter starts with one slice for Config.Keys keys. When that slice is full, a slice for twice as
// many keys is added, as long as Config.MaxBytes allows it. A key is new only if no slice has it, so
// the slices share the error. The first slice may use 10 % of the error, and each further slice 90 %
// of the share of the slice before it. All shares together never exceed the whole error. If
// Config.Keys do not fit with so small an error, the first slice may use the whole error. Such a
// filter cannot grow, but it takes half the memory or less. See SizeFor.
//
// # Keys
//
// Keys are 64-bit sums under a secret that is drawn when the process starts. So outsiders cannot
// search for keys that collide, and a filter must not outlive its process. Two different keys have
// the same sum with a probability of 2^-64. At a billion keys this adds 5e-11 to the error, far below
// any supported error. So one sum is enough, and the places of all bits are derived from it.
package bloom

import (
	"cmp"
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
)

// Config specifies the size and the error of a filter.
type Config struct {
	// Keys is the number of keys for which the first slice is made. 0 means 65,536. If more keys
	// are added, the filter grows.
	Keys uint64
	// Error is the highest acceptable probability that Has returns true for a key that was not
	// added. It must be between 1e-9 and 0.5.
	Error float64
	// MaxBytes bounds the words of all slices together. It must be at least 8. SizeFor returns the
	// number of bytes for Keys. (The counters of a filter take another 5 KB.)
	MaxBytes int64
}

const (
	defaultKeys = 1 << 16
	growth      = 2
	firstShare  = 0.1 // the first slice's share of the error; all shares add up to 1, because of shareDecay
	shareDecay  = 1 - firstShare
	minError    = 1e-9
	maxError    = 0.5
)

// Filter is a Bloom filter that grows up to Config.MaxBytes. Its methods may be called concurrently.
type Filter struct {
	config Config
	chain  atomic.Pointer[chain]
	grow   sync.Mutex // held while the chain is replaced; Has never uses this lock

	// added counts the added keys. It consists of many counters, so that processor cores seldom wait for the same
	// counter.
	added [stripes]struct {
		atomic.Uint64
		_ [56]byte
	}
}

const stripes = 64

// chain is immutable. To grow, the filter replaces its chain by a new chain with the same slices
// and one more slice.
type chain struct {
	slices    []*slice // oldest first; keys are added to the last slice
	fullAt    uint64   // number of keys in the filter at which the last slice is full
	checkMask uint64   // when a counter in Filter.added has none of these bits set, the total number of keys is checked
	bytes     int64
	share     float64 // the share of the error that the last slice may use
	saturated bool
}

// New makes an empty filter.
func New(config Config) (*Filter, error) {
	config.Keys = cmp.Or(config.Keys, defaultKeys)
	if !(config.Error >= minError && config.Error <= maxError) {
		return nil, fmt.Errorf("bloom: Error is %v: choose between %v and %v", config.Error, minError, maxError)
	}
	if config.MaxBytes < wordBytes {
		return nil, fmt.Errorf("bloom: MaxBytes is %d: give at least %d", config.MaxBytes, wordBytes)
	}
	f := &Filter{config: config}
	share := firstShare
	plan := planSlice(config.Keys, config.Error*share, config.MaxBytes)
	if plan.capacity < config.Keys {
		// No memory is left for a second slice, so the first may use all of the error.
		share = 1
		plan = planSlice(config.Keys, config.Error, config.MaxBytes)
	}
	first, err := newSlice(plan)
	if err != nil {
		return nil, fmt.Errorf("bloom: memory for the first slice: %w", err)
	}
	f.chain.Store((&chain{}).with(first, share, 0))
	return f, nil
}

// Has reports whether the key may have been added. False means that the key was certainly not
// added.
func (f *Filter) Has(key Sum) bool {
	c := f.chain.Load()
	seen := c.saturated || c.has(key, len(c.slices))
	runtime.KeepAlive(c) // the memory of the slices is freed when nothing refers to their chain
	return seen
}

// Add adds the key, and reports whether it was certainly new, that is, whether Has would have
// returned false before. If several goroutines add the same key concurrently, each of their calls
// may return true.
func (f *Filter) Add(key Sum) (added bool) {
	c := f.chain.Load()
	last := len(c.slices) - 1
	if c.saturated || c.has(key, last) || !c.slices[last].add(key) {
		return false
	}
	if n := f.added[key%stripes].Add(1); n&c.checkMask == 0 && f.keys() > c.fullAt {
		f.extend(c)
	}
	runtime.KeepAlive(c)
	return true
}

// has checks the first n slices. It starts with the last of these, which is the largest and contains most of the
// keys.
func (c *chain) has(key Sum, n int) bool {
	for i := n - 1; i >= 0; i-- {
		if c.slices[i].has(key) {
			return true
		}
	}
	return false
}

// with returns a copy of the chain with one more slice. keys is the present number of keys in the
// filter.
func (c *chain) with(s *slice, share float64, keys uint64) *chain {
	return &chain{
		slices: append(append([]*slice(nil), c.slices...), s),
		fullAt: keys + s.plan.capacity,
		// All counters in Filter.added grow at about the same pace, so they all trigger a check of the total at about
		// the same time. With this checkMask, the total is checked at least 512 times until a large slice is full.
		// The checks cost a fraction of a nanosecond per key, and the slice exceeds its capacity by at most 0.2 %.
		checkMask: 1<<max(0, bits.Len64(s.plan.capacity>>15)-1) - 1,
		bytes:     c.bytes + s.plan.bytes(),
		share:     share,
	}
}

// extend adds a slice to the full chain. If the memory does not allow another slice, the chain becomes saturated.
// Other goroutines that find the last slice full wait for the lock grow. Otherwise they could add so many keys while
// extend is interrupted that the slice would return "maybe" for every key. The few keys that are still added to the
// full slice remain visible in it.
func (f *Filter) extend(full *chain) {
	f.grow.Lock()
	defer f.grow.Unlock()
	if f.chain.Load() != full {
		return
	}
	next := *full
	next.saturated = true
	capacity := full.slices[len(full.slices)-1].plan.capacity
	share := full.share * shareDecay
	plan := planSlice(capacity*growth, f.config.Error*share, f.config.MaxBytes-full.bytes)
	// Each slice makes every look-up slower, so a slice that would soon be full is not worthwhile.
	if full.share < 1 && plan.capacity >= capacity/growth && plan.capacity > 0 {
		if s, err := newSlice(plan); err == nil {
			next = *full.with(s, share, f.keys())
		}
	}
	f.chain.Store(&next)
}

func (f *Filter) keys() (n uint64) {
	for i := range f.added {
		n += f.added[i].Load()
	}
	return n
}

// Saturated reports whether the memory is used up, so that Has returns true for every key.
func (f *Filter) Saturated() bool { return f.chain.Load().saturated }

// Stats describes a filter at one moment.
type Stats struct {
	Bytes     int64   // memory of the slices
	Keys      uint64  // added keys, without keys that were "maybe seen" before
	Fill      float64 // share of the bits that are set
	Error     float64 // estimated probability that a new key returns "maybe" now
	Slices    int
	Saturated bool // Has returns true for every key, and Error is 1
}

// Stats describes the present filter. It is cheap enough for a metrics scrape: it estimates Fill and
// Error from a sample of some thousand words of each slice. Fill and Error show the state of the
// memory, and not the expectation of the formulas.
func (f *Filter) Stats() Stats {
	c := f.chain.Load()
	defer runtime.KeepAlive(c)
	stats := Stats{Bytes: c.bytes, Keys: f.keys(), Slices: len(c.slices), Saturated: c.saturated}
	right := 1.0
	for _, s := range c.slices {
		fill, wrong := s.sample()
		stats.Fill += fill * float64(s.plan.bytes()) / float64(c.bytes)
		right *= 1 - wrong
	}
	if c.saturated {
		right = 0
	}
	stats.Error = 1 - right
	return stats
}
