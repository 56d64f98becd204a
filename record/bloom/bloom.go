// Package bloom is a Bloom filter: it reports for a key either "certainly new" or "maybe seen".
//
// # Guarantees
//
// "Certainly new" is always right, and "maybe seen" may be wrong. Once Add(k) has returned, Has(k) is true for ever,
// in every goroutine. If a key was never added, Has returns true with a probability of at most Config.Error. A filter
// whose memory is used up becomes saturated: Has then returns true for every key, and Saturated reports this.
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
// error (see shape.wordPasses), and sizes are computed with this formula. Filter.Stats does not use the formula, but
// estimates the error from the bits that are set. From a sample of words it computes the mean probability that a new
// key finds its bits set in a word. It raises this probability to the power of the number of words per key.
//
// # Growth
//
// A filter starts with one slice for Config.Keys keys. When that slice is full, a slice for twice as many keys is
// added, as long as Config.MaxBytes allows it. A key is new only if no slice contains it, so the errors of all slices
// add up to the error of the filter. The first slice may use 10 % of the error, and each further slice 90 % of the
// share of the slice before it. All shares together never exceed the whole error. If Config.MaxBytes is too small for
// Config.Keys at 10 % of the error, the first slice may use the whole error. Such a filter cannot grow, but it needs
// less memory for the same keys. See SizeFor.
//
// # Keys
//
// Keys are 64-bit hashes, called sums. They depend on a secret that is drawn when the process starts, so that
// outsiders cannot search for keys that collide. For this reason, a filter must not outlive its process. Two
// different keys have the same sum with a probability of 2^-64. At a billion keys this adds 5e-11 to the error, far
// below any supported error. So one sum is enough, and the places of all bits are derived from it.
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
	// MaxBytes is the maximum size of all slices together, in bytes. It must be at least 8. SizeFor returns the
	// number of bytes that Keys need. (The counters of a filter take another 5 KB.)
	MaxBytes int64
}

const (
	defaultKeys = 1 << 16
	growth      = 2
	firstShare  = 0.1 // the first slice's share of the error; with shareDecay, the shares of all slices add up to at most 1
	shareDecay  = 1 - firstShare
	minError    = 1e-9
	maxError    = 0.5
)

// Filter is a Bloom filter that grows up to Config.MaxBytes. Its methods may be called concurrently.
type Filter struct {
	config Config
	chain  atomic.Pointer[chain]
	grow   sync.Mutex // held while the chain is replaced; Has never uses this lock

	// added is the number of added keys. It is the sum of many counters, so that processor cores seldom wait for the
	// same counter.
	added [stripes]struct {
		atomic.Uint64
		_ [56]byte
	}
}

const stripes = 64

// chain is the list of a filter's slices. A chain never changes. To grow, the filter replaces its chain by a new
// chain with the same slices and one more slice.
type chain struct {
	slices    []*slice // oldest first; keys are added to the last slice
	fullAt    uint64   // when the filter has this many keys, the last slice is full
	checkMask uint64   // if a counter in Filter.added has none of these bits set, Add compares the total number of keys with fullAt
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
		// MaxBytes leaves no room for a second slice, so the first slice may use the whole error.
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
	runtime.KeepAlive(c) // because the memory of the slices is freed when nothing refers to their chain
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

// has reports whether one of the first n slices contains the key. It starts with the last of these n slices, which is
// the largest and contains most of the keys.
func (c *chain) has(key Sum, n int) bool {
	for i := n - 1; i >= 0; i-- {
		if c.slices[i].has(key) {
			return true
		}
	}
	return false
}

// with returns a new chain: a copy of c with the slice s added. The parameter keys is the present number of keys in
// the filter.
func (c *chain) with(s *slice, share float64, keys uint64) *chain {
	return &chain{
		slices: append(append([]*slice(nil), c.slices...), s),
		fullAt: keys + s.plan.capacity,
		// All counters in Filter.added grow at about the same pace, so all of them cause a check of the total at
		// about the same time. While a large slice is being filled, the total is checked at least 512 times. The
		// checks cost a fraction of a nanosecond per key, and the slice exceeds its capacity by at most 0.2 %.
		checkMask: 1<<max(0, bits.Len64(s.plan.capacity>>15)-1) - 1,
		bytes:     c.bytes + s.plan.bytes(),
		share:     share,
	}
}

// extend replaces the chain "full", whose last slice is full. The new chain has one more slice. If the memory does
// not allow another slice, the new chain is saturated instead. Other goroutines that find the last slice full wait
// for the lock grow. Otherwise they could add so many keys during this time that the slice would return "maybe" for
// every key. A few keys may still be added to the full slice. They are not lost, because the new chain also contains
// this slice.
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
	// Every further slice makes all look-ups slower. So extend adds no slice that would soon be full.
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
	Keys      uint64  // number of added keys; a key for which Has was already true is not counted
	Fill      float64 // share of the bits that are set
	Error     float64 // estimated probability that Has now returns true for a new key
	Slices    int
	Saturated bool // Has returns true for every key, and Error is 1
}

// Stats returns statistics about the filter. It estimates Fill and Error from some thousand words of each slice, so
// it is cheap enough for a metrics scrape. The estimates depend only on the bits that are set, and not on the
// formulas for sizes.
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
