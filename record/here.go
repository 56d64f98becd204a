package record

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"footfall/db"
)

// hereEvery is how often the present visitors are written, as a row for each site with visits.
const hereEvery = 5 * time.Second

// here collects the visitors of each site since the last write. Visits do not wait for the write. If
// it fails, its visitors are dropped, because they only matter for some minutes.
type here struct {
	mu   sync.Mutex
	came map[pair]struct{} // at sites
}

// saw records that a visitor is on a site, unless the caller gave the visit's time, or the site or
// the person is unknown.
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

// Accepted records that a visitor is on a site if the visit is counted later. It has no effect for a
// site that this instance has not counted recently.
func (r *Recorder) Accepted(v Visit) {
	if now := r.caches.current.Load(); now != nil {
		e := &entry{Visit: v}
		now.lookUp(e)
		r.here.saw(e)
		r.titles.saw(e, now)
	}
}
