package counter

import (
	"footfall/counter/app"
	"footfall/visit"
)

// skips returns why a visit is skipped, or "" if it counts.
func (c *Counter) skips(a *app.App, r *Request, w subject) visit.Skipped {
	why := c.whySkipped(a, r, w)
	if why != "" {
		c.metrics.skipped.WithLabelValues(string(why)).Inc()
	}
	return why
}

func (c *Counter) whySkipped(a *app.App, r *Request, w subject) visit.Skipped {
	switch {
	case r.Prefetch:
		return visit.SkippedPrefetch
	case a.Ignores(w.address, r.Visitor, r.Referrer, r.URI):
		return visit.SkippedIgnored
	case a.RespectDnt && r.DoNotTrack:
		return visit.SkippedDNT
	case r.Agent == "" && w.asserter: // a backend may not have the visitor's User-Agent
	case w.fromBadge && isImageProxy(r.Agent):
	case a.SkipsBots(w.untrusted) && c.bots.isBot(r.Agent):
		return visit.SkippedBot
	}
	return ""
}
