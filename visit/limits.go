package visit

import (
	"net/netip"
	"time"

	"footfall/db"
)

// Limits of an app that sets none of its own, where the caller is a stranger: far above what people do, and far below what
// a program can.
const (
	usualRequests    = 600       // a minute from one address: an office behind one address clicks less
	usualNewVisitors = 10_000    // a minute
	usualNewPages    = 10_000    // a day
	usualPages       = 1_000_000 // in all
)

// limit is a number of things in a time, or in all; 0: any number.
type limit struct {
	most   int64
	chosen bool // by the app: then it holds for everybody
}

// holds reports whether the limit holds for a visit by a stranger, or by somebody who is believed.
func (l limit) holds(stranger bool) bool { return l.most > 0 && (stranger || l.chosen) }

// limits of an app.
type limits struct{ requests, newVisitors, newPages, pages limit }

func newLimits(row db.App) limits {
	return limits{
		requests:    limitOf(row.MaxRequests, usualRequests),
		newVisitors: limitOf(row.MaxNewVisitors, usualNewVisitors),
		newPages:    limitOf(row.MaxNewPages, usualNewPages),
		pages:       limitOf(row.MaxPages, usualPages),
	}
}

func limitOf[N int32 | int64](chosen *N, usual int64) limit {
	if chosen == nil {
		return limit{most: usual}
	}
	return limit{most: int64(*chosen), chosen: true}
}

// pageLimits are those within which a visit may make a page; 0: any number.
type pageLimits struct{ aDay, inAll int64 }

func (l limits) forPages(stranger bool) (p pageLimits) {
	if l.newPages.holds(stranger) {
		p.aDay = l.newPages.most
	}
	if l.pages.holds(stranger) {
		p.inAll = l.pages.most
	}
	return p
}

// rates says how often something may happen a minute. It keeps, for each source, until when what it has had lasts if
// spread evenly; that may be a minute ahead, so that a source may have all of its minute at once. Its memory is bounded: when
// it is full, who was not seen for longest is forgotten, and may begin anew. It is safe for concurrent use.
type rates struct {
	sources *cache[source, time.Duration]
	began   time.Time
	clock   func() time.Time
}

// source is what a rate is of: an address that calls an app, or the app's new visitors. It holds no pointer.
type source struct {
	app  int32
	kind sourceKind
	from [16]byte
}

type sourceKind int32

const (
	fromAddress sourceKind = iota
	fromAnybody
)

const (
	ratesBytes  = 16 << 20
	sourceEntry = 96 // bytes that a source takes in a map, about, at its worst
)

func newRates(clock func() time.Time) *rates {
	return &rates{
		sources: newCache[source, time.Duration](ratesBytes, func(source) int { return sourceEntry }),
		began:   clock(), clock: clock,
	}
}

// addressSource is an address that calls an app. Who has one IPv6 address has all of its /64.
func addressSource(app int32, address netip.Addr) source {
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			address = network.Addr()
		}
	}
	return source{app: app, kind: fromAddress, from: address.As16()}
}

// newVisitorsOf are the new visitors of an app.
func newVisitorsOf(app int32) source { return source{app: app, kind: fromAnybody} }

// take takes one of the most that a source has a minute. If there is none, it returns how long until there is.
func (r *rates) take(s source, most int64) (wait time.Duration) {
	each := time.Minute / time.Duration(most)
	now := r.clock().Sub(r.began)
	r.sources.update(s, func(until time.Duration) time.Duration {
		until = max(until, now)
		if ahead := until + each - now; ahead > max(time.Minute, each) {
			wait = ahead - max(time.Minute, each)
			return until
		}
		return until + each
	})
	return wait
}

// scarce reports whether a source has had more than half of the most it may have a minute.
func (r *rates) scarce(s source, most int64) bool {
	until, _ := r.sources.get(s)
	return until-r.clock().Sub(r.began) > time.Minute/2 || most == 1
}

// giveBack gives back what was taken and not used.
func (r *rates) giveBack(s source, most int64) {
	each := time.Minute / time.Duration(most)
	r.sources.update(s, func(until time.Duration) time.Duration { return until - each })
}
