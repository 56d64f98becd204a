package counter

import (
	"net/netip"
	"time"

	"footfall/db"
	"footfall/record/cache"
)

// Limits of an app that sets none of its own, where the caller is a stranger: far above what people do, and far below what
// a program can.
const (
	usualRequests = 600   // a minute from one address: an office behind one address clicks less
	usualNewPages = 2_000 // a day: at worst 10 GB a year (docs/decisions/0011-limits.md)
)

// limit is a number of things in a time; 0: any number.
type limit struct {
	most   int64
	chosen bool // by the app: then it holds for everybody
}

// of is the limit as it holds for a stranger, or for somebody who is believed; 0: any number.
func (l limit) of(stranger bool) int64 {
	if stranger || l.chosen {
		return l.most
	}
	return 0
}

// limits of an app.
type limits struct{ requests, newPages limit }

func newLimits(row db.App) limits {
	return limits{
		requests: limitOf(row.MaxRequests, usualRequests),
		newPages: limitOf(row.MaxNewPages, usualNewPages),
	}
}

func limitOf(chosen *int32, usual int64) limit {
	if chosen == nil {
		return limit{most: usual}
	}
	return limit{most: int64(*chosen), chosen: true}
}

// rates says how often something may happen a minute. It keeps, for each source, until when what it has had lasts if
// spread evenly; that may be a minute ahead, so that a source may have all of its minute at once. Its memory is bounded: when
// it is full, who was not seen for longest is forgotten, and may begin anew. It is safe for concurrent use.
type rates struct {
	sources *cache.Cache[source, time.Duration]
	began   time.Time
	clock   func() time.Time
}

// source is what a rate is of: an address that calls an app. It holds no pointer.
type source struct {
	app  int32
	from [16]byte
}

const (
	ratesBytes  = 16 << 20
	sourceEntry = 96 // bytes that a source takes in a map, about, at its worst
)

func newRates(clock func() time.Time) *rates {
	return &rates{
		sources: cache.New[source, time.Duration](ratesBytes, func(source) int { return sourceEntry }),
		began:   clock(), clock: clock,
	}
}

// sourceOf is an address that calls an app. Whoever has one IPv6 address has all of its /64.
func sourceOf(app int32, address netip.Addr) source {
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			address = network.Addr()
		}
	}
	return source{app: app, from: address.As16()}
}

// take takes one of the most that a source has a minute. If there is none, it returns how long until there is.
func (r *rates) take(s source, most int64) (wait time.Duration) {
	each := time.Minute / time.Duration(most)
	now := r.clock().Sub(r.began)
	r.sources.Update(s, func(until time.Duration) time.Duration {
		until = max(until, now)
		if ahead := until + each - now; ahead > max(time.Minute, each) {
			wait = ahead - max(time.Minute, each)
			return until
		}
		return until + each
	})
	return wait
}
