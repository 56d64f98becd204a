package counter

import (
	"cmp"
	"context"
	"strings"

	"footfall/counter/app"
	"footfall/visit"
)

// Shown is what a badge shows, and of what.
type Shown struct {
	visit.Answer
	Target visit.Target
	Today  int32 // in the app's time zone
}

// Badge returns the numbers of a page and its site, to anybody, if the app makes them public. With
// counting the visit counts before, if the app lets badges count.
func (c *Counter) Badge(ctx context.Context, r Request, counting bool) (s Shown, err error) {
	a, _, err := c.callerOf(ctx, &r)
	if err != nil {
		return s, err
	}
	s, err = c.badge(ctx, a, r, counting)
	s.Answer = r.shown(a, s.Target, s.Answer)
	return s, err
}

func (c *Counter) badge(ctx context.Context, a *app.App, r Request, counting bool) (s Shown, err error) {
	if r.Event == "" && !a.LetsBadges(counting) {
		return s, visit.Errorf(visit.Forbidden, "", "badges of app %s do not do that: see footfall app set --public-counts", a.Name)
	}
	if r.ParseErr != nil {
		return s, r.ParseErr
	}
	now := c.clock()
	s.Today = visit.DayOf(now, a.Zone)
	w := subject{day: s.Today, at: now, address: r.Peer, visitor: app.BadgeVisitor, badge: true, untrusted: !a.IsOpen()}
	if w.target, err = r.target(a); err != nil {
		return s, err
	}
	if r.Event != "" && (counting || !a.TellsEvent(w.target)) {
		return s, untold(a, true)
	}
	s.Target = w.target
	if err := c.checkRate(a, w); err != nil {
		return s, err
	}
	if counting {
		if err := cmp.Or(c.checkHeld(a), c.checkFault(a)); err != nil {
			return s, err
		}
		if s.Answer, err = c.count(ctx, a, &r, &w); err != nil || !s.Later && !s.NoNumbers {
			return s, err
		}
	}
	s.Answer, err = c.read(ctx, a, w.target, nil)
	return s, err
}

// isImageProxy reports whether a User-Agent is that of a proxy through which people see images: of
// GitHub (github-camo), PyPI and others that run Camo, of Gmail (GoogleImageProxy).
func isImageProxy(agent string) bool {
	return hasAny(strings.ToLower(agent[:min(len(agent), agentBytes)]), []string{"camo", "imageproxy"})
}
