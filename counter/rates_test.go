package counter

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"footfall/db/dbtest"
)

// nowhere returns a different /64 for each number.
func nowhere(n int) netip.Addr {
	var address [16]byte
	address[0] = 0x20
	binary.BigEndian.PutUint32(address[4:], uint32(n)) //nolint:gosec // small
	return netip.AddrFrom16(address)
}

func TestRatesAreExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	r := newRates(func() time.Time { return now })
	var allowed atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 1000 {
				if r.take(rateKeyOf(1, nowhere(0)), 500, 1) == 0 {
					allowed.Add(1)
				}
			}
		})
	}
	all.Wait()
	assert.Equal(t, int64(500), allowed.Load())
	assert.Zero(t, r.take(rateKeyOf(2, nowhere(0)), 500, 1), "another app")
	assert.Zero(t, r.take(rateKeyOf(1, nowhere(1)), 500, 1), "another address")
}

func TestRates(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	r := newRates(func() time.Time { return now })
	s := rateKeyOf(1, nowhere(0))
	for _, most := range []int64{1, 3, 7, 600, 1 << 31} {
		now = now.Add(time.Hour)
		n := int64(0)
		for n <= min(most, 1000) && r.take(s, most, 1) == 0 {
			n++
		}
		if most > 1000 {
			continue
		}
		assert.Equal(t, most, n, "at once")
		wait := r.take(s, most, 1)
		assert.InDelta(t, float64(time.Minute)/float64(most), float64(wait), float64(most))
		now = now.Add(wait)
		assert.Zero(t, r.take(s, most, 1), "one more when that is over")
		assert.NotZero(t, r.take(s, most, 1))
	}
}

// A call that costs many requests takes that many from the limit, and may exceed a minute's limit once.
func TestRatesOfLargeCalls(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	r := newRates(func() time.Time { return now })
	s := rateKeyOf(1, nowhere(0))
	assert.Zero(t, r.take(s, 60, 41))
	assert.Zero(t, r.take(s, 60, 19))
	assert.Equal(t, time.Second, r.take(s, 60, 1))
	assert.Equal(t, 41*time.Second, r.take(s, 60, 41))
	now = now.Add(time.Minute)
	assert.Zero(t, r.take(s, 60, 90))
	assert.Equal(t, 31*time.Second, r.take(s, 60, 1))
	assert.Equal(t, 90*time.Second, r.take(s, 60, 90))
}

// The memory for addresses is bounded, however many there are, and an address that keeps asking is remembered. Not
// parallel, because it measures the heap.
func TestRatesForgetStrangersOnly(t *testing.T) {
	now := time.Unix(1, 0)
	r := newRates(func() time.Time { return now })
	steady := rateKeyOf(1, nowhere(-1))
	before := heap()
	refused := 0
	addresses := dbtest.LongOrShort(1_000_000, 400_000)
	for n := range addresses {
		r.take(rateKeyOf(1, nowhere(n)), 600, 1)
		if n%1000 == 0 && r.take(steady, 10, 1) > 0 {
			refused++
		}
	}
	assert.Equal(t, addresses/1000-10, refused)
	assert.LessOrEqual(t, r.sources.Count(), ratesBytes/sourceEntry)
	assert.Less(t, heap()-before, int64(ratesBytes)*5/4)
	runtime.KeepAlive(r)
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) //nolint:gosec // bytes in memory
}
