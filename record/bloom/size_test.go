package bloom

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSizeFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keys        uint64
		error       float64
		atMostBytes float64
	}{
		{1_000_000_000, 0.001, 2.1 * (1 << 30)},
		{1_000_000_000, 0.001, 1.05 * 14.378 * 1e9 / 8}, // a textbook filter has 14.378 bits a key
		{100_000_000, 0.01, 1.05 * 9.586 * 1e8 / 8},
		{10_000_000, 0.0001, 1.06 * 19.171 * 1e7 / 8},
	} {
		got := SizeFor(c.keys, c.error)
		if float64(got) > c.atMostBytes || float64(got) < 0.8*c.atMostBytes {
			t.Errorf("%d keys at %v take %d bytes, want at most %.0f", c.keys, c.error, got, c.atMostBytes)
		}
		plan := planSlice(c.keys, c.error, got)
		if plan.capacity < c.keys || plan.bytes() > got {
			t.Errorf("%d keys at %v: given SizeFor's %d bytes, plans %+v", c.keys, c.error, got, plan)
		}
	}
}

// The closed form against the thing itself: throw keys into words and look.
func TestWordPassesAgainstSimulation(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	const words = 50_000
	for _, s := range []shape{{4, 1}, {4, 2}, {4, 3}, {7, 4}, {7, 6}} {
		for _, load := range []float64{2, 10, 22} {
			var filled [words]uint64
			patterns := makePatterns(s.bits)
			for range int(load * words) {
				filled[random.IntN(words)] |= patterns.of(random.Uint64())
			}
			passes := 0
			for i := range filled {
				if p := patterns.of(random.Uint64()); p&^filled[i] == 0 {
					passes++
				}
			}
			want := s.wordPasses(load)
			got := float64(passes) / words
			if math.Abs(got-want) > 5*math.Sqrt(want/words)+1e-4 {
				t.Errorf("%+v at load %v: a word passes with %v, computed %v", s, load, got, want)
			}
		}
	}
}

func TestPlanUsesWhatFits(t *testing.T) {
	t.Parallel()
	fits := planSlice(10_000_000, 0.0001, 1<<40)
	if fits.shape.words != fewWords {
		t.Errorf("with memory to spare it takes %d words a key", fits.shape.words)
	}
	tight := planSlice(10_000_000, 0.0001, fits.bytes()-8)
	if tight.shape.words != manyWords || tight.capacity < 10_000_000 {
		t.Errorf("a little less memory still holds the keys, but the plan is %+v", tight)
	}
	part := planSlice(10_000_000, 0.0001, 1_000_000)
	if part.bytes() != 1_000_000 || part.capacity < 390_000 || part.capacity > 420_000 {
		t.Errorf("a megabyte holds 400,000 keys at 20 bits, the plan is %+v", part)
	}
}
