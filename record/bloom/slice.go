package bloom

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
)

// slice is one Bloom filter of a fixed size.
type slice struct {
	plan     plan
	words    []uint64 // accessed only through sync/atomic
	patterns *patterns
	many     bool // a key sets bits in manyWords words instead of fewWords
}

func newSlice(p plan) (*slice, error) {
	words, release, err := allocate(p.words)
	if err != nil {
		return nil, err
	}
	s := &slice{plan: p, words: words, patterns: patternsOf[p.shape.bits](), many: p.shape.words == manyWords}
	if release != nil {
		runtime.AddCleanup(s, func(release func()) { release() }, release)
	}
	return s, nil
}

// Multipliers with which the places of a key's words are derived from its Sum. The multipliers are odd, and have
// about as many one bits as zero bits.
const (
	mix0 = 0xa0761d6478bd642f
	mix1 = 0xe7037ed1a0b428db
	mix2 = 0x8ebc6af09c88c6e3
	mix3 = 0x589965cc75374cc3
	mix4 = 0x1d8e4e27c47d124f
)

func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// place converts a random number to a place i with 0 <= i < n. The other result, rest, is random enough to compute
// another place from it.
func place(random, n uint64) (i, rest uint64) { return bits.Mul64(random, n) }

// add sets the key's bits and reports whether any was missing.
//
// The code of add and has is written out for each word of the key. With a loop, places and patterns would be in
// memory instead of in registers, and each call would take 50 % more time. All words are loaded before the first word
// is checked, so that the cache misses overlap. If any bit is missing, add writes all words, because finding out
// which words lack a bit would take longer.
func (s *slice) add(key Sum) bool {
	if s.many {
		return s.addMany(uint64(key))
	}
	return s.addFew(uint64(key))
}

func (s *slice) addFew(key uint64) bool {
	w, n, t := s.words, uint64(len(s.words)), s.patterns
	a, b := mix(key^mix1, mix0), mix(key^mix2, mix1)
	i0, a := place(a, n)
	i1, b := place(b, n)
	i2, _ := place(a, n)
	i3, _ := place(b, n)
	w0, w1, w2, w3 := atomic.LoadUint64(&w[i0]), atomic.LoadUint64(&w[i1]), atomic.LoadUint64(&w[i2]), atomic.LoadUint64(&w[i3])
	p0, p1, p2, p3 := t.of(key), t.of(key>>16), t.of(key>>32), t.of(key>>48)
	if p0&^w0|p1&^w1|p2&^w2|p3&^w3 == 0 {
		return false
	}
	atomic.OrUint64(&w[i0], p0)
	atomic.OrUint64(&w[i1], p1)
	atomic.OrUint64(&w[i2], p2)
	atomic.OrUint64(&w[i3], p3)
	return true
}

func (s *slice) addMany(key uint64) bool {
	w, n, t := s.words, uint64(len(s.words)), s.patterns
	a, b, c, d := mix(key^mix1, mix0), mix(key^mix2, mix1), mix(key^mix0, mix3), mix(key^mix3, mix2)
	i0, a := place(a, n)
	i1, b := place(b, n)
	i4, c := place(c, n)
	i5, _ := place(d, n)
	i2, _ := place(a, n)
	i3, _ := place(b, n)
	i6, _ := place(c, n)
	w0, w1, w2, w3 := atomic.LoadUint64(&w[i0]), atomic.LoadUint64(&w[i1]), atomic.LoadUint64(&w[i2]), atomic.LoadUint64(&w[i3])
	w4, w5, w6 := atomic.LoadUint64(&w[i4]), atomic.LoadUint64(&w[i5]), atomic.LoadUint64(&w[i6])
	more := mix(key, mix4)
	p0, p1, p2, p3 := t.of(key), t.of(key>>16), t.of(key>>32), t.of(key>>48)
	p4, p5, p6 := t.of(more), t.of(more>>16), t.of(more>>32)
	if p0&^w0|p1&^w1|p2&^w2|p3&^w3|p4&^w4|p5&^w5|p6&^w6 == 0 {
		return false
	}
	atomic.OrUint64(&w[i0], p0)
	atomic.OrUint64(&w[i1], p1)
	atomic.OrUint64(&w[i2], p2)
	atomic.OrUint64(&w[i3], p3)
	atomic.OrUint64(&w[i4], p4)
	atomic.OrUint64(&w[i5], p5)
	atomic.OrUint64(&w[i6], p6)
	return true
}

// has first checks four words, which are enough to recognise most new keys. If all bits are set in these words, and a
// key has more words, it also checks the other three. It uses the same places and patterns as add.
func (s *slice) has(key Sum) bool {
	return s.hasFirst(uint64(key)) && (!s.many || s.hasRest(uint64(key)))
}

func (s *slice) hasFirst(key uint64) bool {
	w, n, t := s.words, uint64(len(s.words)), s.patterns
	a, b := mix(key^mix1, mix0), mix(key^mix2, mix1)
	i0, a := place(a, n)
	i1, b := place(b, n)
	i2, _ := place(a, n)
	i3, _ := place(b, n)
	w0, w1, w2, w3 := atomic.LoadUint64(&w[i0]), atomic.LoadUint64(&w[i1]), atomic.LoadUint64(&w[i2]), atomic.LoadUint64(&w[i3])
	return t.of(key)&^w0|t.of(key>>16)&^w1|t.of(key>>32)&^w2|t.of(key>>48)&^w3 == 0
}

func (s *slice) hasRest(key uint64) bool {
	w, n, t := s.words, uint64(len(s.words)), s.patterns
	c, d := mix(key^mix0, mix3), mix(key^mix3, mix2)
	i4, c := place(c, n)
	i5, _ := place(d, n)
	i6, _ := place(c, n)
	w4, w5, w6 := atomic.LoadUint64(&w[i4]), atomic.LoadUint64(&w[i5]), atomic.LoadUint64(&w[i6])
	more := mix(key, mix4)
	return t.of(more)&^w4|t.of(more>>16)&^w5|t.of(more>>32)&^w6 == 0
}

// sample examines some of the words, and estimates two values. fill is the share of the bits that are set. wrong is
// the probability that has returns true for a new key.
func (s *slice) sample() (fill, wrong float64) {
	const most = 8192
	n := min(len(s.words), most)
	var chance [65]float64 // by the number of set bits in a word: the probability that all bits of a new key are set in this word
	for ones := range chance {
		chance[ones] = choose(ones, s.plan.shape.bits) / choose(64, s.plan.shape.bits)
	}
	passes := 0.0
	for i := range n {
		place, _ := bits.Mul64(uint64(i)<<51, uint64(len(s.words))) // spread evenly over all words
		if n < most {
			place = uint64(i)
		}
		ones := bits.OnesCount64(atomic.LoadUint64(&s.words[place]))
		fill += float64(ones) / 64
		passes += chance[ones]
	}
	return fill / float64(n), math.Pow(passes/float64(n), float64(s.plan.shape.words))
}

// patterns are words in which the same number of bits are set. To choose a pattern, 16 bits of a key's Sum select one
// of the 1,024 words and one of its 64 rotations. So there are 65,536 patterns, and a choice takes only one load and
// one rotation.
type patterns [1024]uint64

func (p *patterns) of(random uint64) uint64 {
	return bits.RotateLeft64(p[random&1023], int(random>>10&63))
}

// patternsOf[n] is a function that returns the patterns with n set bits. It makes them on its first call. The
// patterns need not be secret, because the sums depend on a secret.
var patternsOf = func() (of [maxBits + 1]func() *patterns) {
	for n := range of {
		of[n] = sync.OnceValue(func() *patterns { return makePatterns(n) })
	}
	return of
}()

func makePatterns(n int) *patterns {
	random := rand.New(rand.NewPCG(uint64(n), 0))
	var p patterns
	for i := range p {
		for bits.OnesCount64(p[i]) < n {
			p[i] |= 1 << random.IntN(64)
		}
	}
	return &p
}
