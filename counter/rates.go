package counter

import (
	"net/netip"
	"time"

	"footfall/record/cache"
)

// rates limits how often each source may send a request a minute. For each source it keeps until
// when its requests so far would last if they were spread evenly. That may lie a minute ahead, so
// that a source may send all requests of a minute at once. Its memory is bounded: when it is full,
// the source that was not seen for longest begins anew. checkRate, in visit.go, refuses by it. It is
// safe for concurrent use.
type rates struct {
	sources *cache.Cache[source, time.Duration]
	began   time.Time
	clock   func() time.Time
}

// source is an address that calls an app. It holds no pointer, so that the garbage collector need
// not look into it.
type source struct {
	app  int32
	from [16]byte
}

const (
	ratesBytes  = 16 << 20
	sourceEntry = 96 // bytes that an entry takes in a map at most, about
)

// newRates makes limits that go by a clock; without one by this machine's, which is only asked how
// much time has passed.
func newRates(clock func() time.Time) *rates {
	if clock == nil {
		clock = time.Now
	}
	return &rates{
		sources: cache.New[source, time.Duration](ratesBytes, func(source) int { return sourceEntry }),
		began:   clock(), clock: clock,
	}
}

// sourceOf returns the source of a request. A caller who has one IPv6 address has all of its /64.
func sourceOf(app int32, address netip.Addr) source {
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			address = network.Addr()
		}
	}
	return source{app: app, from: address.As16()}
}

// take takes so many of the requests that a source may send a minute. If not as many are left, it
// returns how long until they are; more than those of a minute are there once none is taken.
func (r *rates) take(s source, most int64, requests int) (wait time.Duration) {
	all := time.Minute / time.Duration(most) * time.Duration(requests)
	now := r.clock().Sub(r.began)
	r.sources.Update(s, func(until time.Duration) time.Duration {
		until = max(until, now)
		if ahead := until + all - now; ahead > max(time.Minute, all) {
			wait = ahead - max(time.Minute, all)
			return until
		}
		return until + all
	})
	return wait
}
