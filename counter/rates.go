package counter

import (
	"net/netip"
	"time"

	"footfall/record/cache"
)

// rates limits the requests of each source, such as an address, per minute. Each request uses up an interval: a minute
// divided by the limit. The intervals of a source follow one another, and rates stores the end of the last interval. This
// end may be up to a minute in the future, so that a source can send all requests of a minute at once. When the memory is
// full, rates forgets sources that have sent no request for a long time. The methods of rates are safe for concurrent use.
type rates struct {
	sources *cache.Cache[rateKey, time.Duration]
	began   time.Time
	clock   func() time.Time
}

// rateKey identifies a source: an address, and the app that it calls. It contains no pointer, so the garbage collector does
// not scan it.
type rateKey struct {
	app  int32
	from [16]byte
}

const (
	ratesBytes  = 16 << 20
	sourceEntry = 96 // approximate maximum bytes of an entry in a map
)

// newRates returns rates without any sources. If clock is nil, they use this machine's monotonic clock.
func newRates(clock func() time.Time) *rates {
	if clock == nil {
		clock = time.Now
	}
	return &rates{
		sources: cache.New[rateKey, time.Duration](ratesBytes, func(rateKey) int { return sourceEntry }),
		began:   clock(), clock: clock,
	}
}

// rateKeyOf returns the source for an app and an address. All addresses of an IPv6 /64 are one source, because one caller
// controls the whole /64.
func rateKeyOf(app int32, address netip.Addr) rateKey {
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			address = network.Addr()
		}
	}
	return rateKey{app: app, from: address.As16()}
}

// take uses up requests of the source s. most is how many requests a source may send in a minute. If fewer requests are
// left, take uses up none, and returns the time until enough are left. A call that costs more requests than the limit is
// allowed if the source has used up none.
func (r *rates) take(s rateKey, most int64, requests int) (wait time.Duration) {
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
