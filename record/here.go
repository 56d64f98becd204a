package record

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"footfall/db"
)

// hereEvery is the interval between writes to the table named here, which lists the visitors of each site in the last
// minutes. Each write adds one row for each site that had visits in the interval.
const hereEvery = 5 * time.Second

// presence collects the visitors of each site until they are written to the table named here. Responses to visits do
// not wait for this. If a write fails, its visitors are dropped, because the table shows a visitor for only a few
// minutes anyway.
type presence struct {
	mu       sync.Mutex
	visitors map[pair]struct{} // (site, visitor) pairs
}

// add records that the entry's visitor is on the entry's site now. It ignores a visit if the caller has passed its
// time, or if its site id or person is not available yet.
func (h *presence) add(e *entry) {
	if e.When != Live || e.site.id == 0 || e.unresolved {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.visitors[pairOf(e.site.id, e.person)] = struct{}{}
}

// write writes the collected visitors to the table named here. It calls HereAdd even if there are no visitors,
// because HereAdd also deletes old rows.
func (h *presence) write(ctx context.Context, d *db.DB) error {
	h.mu.Lock()
	collected := h.visitors
	h.visitors = make(map[pair]struct{}, len(collected)) // the next interval probably has about as many visitors
	h.mu.Unlock()
	sites, visitors := []int64{}, []netip.Addr{}
	for p := range collected {
		sites, visitors = append(sites, p.target), append(visitors, netip.AddrFrom16(p.visitor).Unmap())
	}
	return d.InTx(ctx, func(q *db.Queries) error { return q.HereAdd(ctx, sites, visitors) })
}

// Accepted processes a visit that the inbox has accepted to be counted later. It records that the visitor is on the
// site now, and adds the visitor's vote for the page's title. It ignores sites and pages that this instance has not
// counted recently.
func (r *Recorder) Accepted(v Visit) {
	if now := r.caches.current.Load(); now != nil {
		e := &entry{Visit: v}
		now.lookUp(e)
		r.presence.add(e)
		r.titles.processVote(e, now)
	}
}
