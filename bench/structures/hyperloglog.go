package structures

import (
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// hyperLogLog estimates how many different keys it was given. The first bits of a key's hash choose
// a register, which keeps the longest run of zeros that the remaining bits ever began with: the
// more keys, the longer. The standard error is 1.04 / √registers. It cannot tell whether a single
// key was there.
//
// Registers have 8 bits, or 4: then runs end at 15, which distorts the estimate only beyond a
// thousand keys a register.
type hyperLogLog struct {
	memory    []uint8
	width     int
	indexBits int // of a hash; at least 7, or the correction below does not hold
	part      []uint64
}

func newHyperLogLog(indexBits, width int) *hyperLogLog {
	return &hyperLogLog{memory: make([]uint8, 1<<indexBits*width/8), width: width, indexBits: indexBits}
}

func (s *hyperLogLog) prepare(keys []string) {
	s.part = make([]uint64, 0, len(keys))
	for _, key := range keys {
		s.part = append(s.part, xxhash.Sum64String(key))
	}
}

func (s *hyperLogLog) checkAndAdd() (fresh int) {
	for _, hash := range s.part {
		s.add(hash)
	}
	return len(s.part)
}

func (s *hyperLogLog) add(hash uint64) {
	run := bits.LeadingZeros64(hash<<s.indexBits|1<<(s.indexBits-1)) + 1
	register := int(hash >> (64 - s.indexBits))
	if run = min(run, 1<<s.width-1); run > s.register(register) {
		i, shift := s.place(register)
		s.memory[i] = s.memory[i]&^((1<<s.width-1)<<shift) | uint8(run)<<shift
	}
}

func (s *hyperLogLog) place(register int) (i, shift int) {
	return register * s.width / 8, register * s.width % 8
}

func (s *hyperLogLog) register(register int) (run int) {
	i, shift := s.place(register)
	return int(s.memory[i]>>shift) & (1<<s.width - 1)
}

// estimate is the harmonic mean of what the registers stand for, with the known correction; while
// many registers are empty, how many are tells more.
func (s *hyperLogLog) estimate() int {
	n := float64(int(1) << s.indexBits)
	sum, empty := 0.0, 0.0
	for register := range 1 << s.indexBits {
		run := s.register(register)
		sum += math.Ldexp(1, -run)
		if run == 0 {
			empty++
		}
	}
	estimate := 0.7213 / (1 + 1.079/n) * n * n / sum
	if estimate <= 2.5*n && empty > 0 {
		estimate = n * math.Log(n/empty)
	}
	return int(math.Round(estimate))
}
