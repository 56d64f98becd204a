package record

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"footfall/db"
)

// hereEvery is how often it is noted who came: a row for each site that had visits.
const hereEvery = 5 * time.Second

// here is who came to which site since that was noted last. It is noted beside counting, which waits
// for nothing; what cannot be noted is forgotten, since that is about the last minutes.
type here struct {
	mu   sync.Mutex
	came map[pair]struct{} // at sites
}

// saw notes that a visitor is on a site, unless their visit was of a time that the caller gave, or
// where it is is not known.
func (h *here) saw(e *entry) {
	if e.When != Live || e.site.id == 0 || e.unresolved {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.came[pairOf(e.site.id, e.person)] = struct{}{}
}

// tell writes it down, and has rows go that are old, also where nobody came.
func (h *here) tell(ctx context.Context, d *db.DB) error {
	h.mu.Lock()
	came := h.came
	h.came = make(map[pair]struct{}, len(came)) // about as many come in the next seconds
	h.mu.Unlock()
	sites, visitors := []int64{}, []netip.Addr{}
	for p := range came {
		sites, visitors = append(sites, p.target), append(visitors, netip.AddrFrom16(p.visitor).Unmap())
	}
	return d.InTx(ctx, func(q *db.Queries) error { return q.HereAdd(ctx, sites, visitors) })
}

// Accepted notes that a visitor is on a site whose visit is counted later. A site that this instance
// has not counted of late is not known yet.
func (r *Recorder) Accepted(v Visit) {
	if now := r.caches.current.Load(); now != nil {
		e := &entry{Visit: v}
		now.lookUp(e)
		r.here.saw(e)
		r.titles.saw(e, now)
	}
}
