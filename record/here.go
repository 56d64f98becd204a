package record

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"footfall/db"
)

// hereEvery is how often the present visitors are written. Each write adds one row for each site
// with visits.
const hereEvery = 5 * time.Second

// here collects the visitors of each site since the last write. Visits do not wait for the write. If
// a write fails, its visitors are dropped, because they are shown for only a few minutes.
type here struct {
	mu   sync.Mutex
	came map[pair]struct{} // (site, visitor) pairs
}

// saw records that a visitor is on a site. It ignores visits for which the caller gave the time,
// and visits whose site or person is unknown.
func (h *here) saw(e *entry) {
	if e.When != Live || e.site.id == 0 || e.unresolved {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.came[pairOf(e.site.id, e.person)] = struct{}{}
}

// tell writes the collected visitors. The query also deletes old rows, so it runs even without
// visitors.
func (h *here) tell(ctx context.Context, d *db.DB) error {
	h.mu.Lock()
	came := h.came
	h.came = make(map[pair]struct{}, len(came)) // the next seconds have about as many
	h.mu.Unlock()
	sites, visitors := []int64{}, []netip.Addr{}
	for p := range came {
		sites, visitors = append(sites, p.target), append(visitors, netip.AddrFrom16(p.visitor).Unmap())
	}
	return d.InTx(ctx, func(q *db.Queries) error { return q.HereAdd(ctx, sites, visitors) })
}

// Accepted processes a visit that was accepted, but is counted later: it records that the visitor is
// on the site, and the page's title. It ignores sites for which this instance has not counted
// recently.
func (r *Recorder) Accepted(v Visit) {
	if now := r.caches.current.Load(); now != nil {
		e := &entry{Visit: v}
		now.lookUp(e)
		r.here.saw(e)
		r.titles.saw(e, now)
	}
}
