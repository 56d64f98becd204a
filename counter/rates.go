package counter

import (
	"net/netip"
	"time"

	"footfall/record/cache"
)

// rates limits the requests of each source per minute. Each request occupies a minute divided by the limit, one request
// after another. For each source, rates stores when the time of its last request ends. This may be a minute ahead, so a
// source may send all requests of a minute at once. Memory is bounded: when it is full, sources that were unused for a
// long time are forgotten. checkRate (visit.go) uses it. It is safe for concurrent use.
type rates struct {
	sources *cache.Cache[rateKey, time.Duration]
	began   time.Time
	clock   func() time.Time
}

// rateKey is an address that calls an app. It contains no pointer, so the garbage collector does not scan it.
type rateKey struct {
	app  int32
	from [16]byte
}

const (
	ratesBytes  = 16 << 20
	sourceEntry = 96 // approximate maximum bytes of an entry in a map
)

// newRates creates limits. Without a clock they use this machine's clock, and only the time that has passed.
func newRates(clock func() time.Time) *rates {
	if clock == nil {
		clock = time.Now
	}
	return &rates{
		sources: cache.New[rateKey, time.Duration](ratesBytes, func(rateKey) int { return sourceEntry }),
		began:   clock(), clock: clock,
	}
}

// rateKeyOf returns the source of a request. A caller with one IPv6 address controls its whole /64.
func rateKeyOf(app int32, address netip.Addr) rateKey {
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			address = network.Addr()
		}
	}
	return rateKey{app: app, from: address.As16()}
}

// take uses up requests of a source's limit per minute. If too few are left, it uses none and returns the time until
// enough are. More requests than the limit are allowed once none is in use.
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
