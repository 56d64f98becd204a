package counter

import (
	"footfall/counter/app"
	"footfall/visit"
)

// skips returns why a visit is not to be counted; "" for a visit that is.
func (c *Counter) skips(a *app.App, r *Request, w subject) visit.Skipped {
	switch {
	case r.Prefetch:
		return visit.SkippedPrefetch
	case a.Ignores(w.address, r.Visitor):
		return visit.SkippedIgnored
	case a.RespectDNT && r.DoNotTrack:
		return visit.SkippedDNT
	case r.Agent == "" && w.asserter: // a backend tells of the visitor what it knows
	case a.SkipsBots(w.untrusted) && c.bots.is(r.Agent):
		return visit.SkippedBot
	}
	return ""
}
