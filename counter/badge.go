package counter

import (
	"cmp"
	"context"
	"strings"

	"footfall/counter/app"
	"footfall/visit"
)

// Badge returns the numbers of a page and its site for a badge, an image that any page can show. The caller needs no key,
// but the app must make the numbers public. If counting is true, Badge first counts the visit, and fails if the app does
// not let badges count.
func (c *Counter) Badge(ctx context.Context, r Request, counting bool) (answer visit.Answer, err error) {
	a, _, err := c.findCaller(ctx, &r)
	if err != nil {
		return answer, err
	}
	target, answer, err := c.badge(ctx, a, r, counting)
	return r.addOffsets(a, target, answer), err
}

func (c *Counter) badge(ctx context.Context, a *app.App, r Request, counting bool) (target visit.Target, answer visit.Answer, err error) {
	if r.Event == "" && !a.AllowsBadges(counting) {
		return target, answer, visit.Errorf(visit.Forbidden, "",
			"app %s does not allow this for badges: its operator can change --public-counts (footfall app set)", a.Name)
	}
	if r.ParseErr != nil {
		return target, answer, r.ParseErr
	}
	now := c.clock()
	w := subject{day: visit.DayOf(now, a.Zone), visitTime: now, address: r.Peer, visitor: app.BadgeVisitor,
		fromBadge: true, untrusted: !a.IsOpen()}
	if w.target, err = r.target(a); err != nil {
		return target, answer, err
	}
	if r.Event != "" && (counting || !a.HasPublicEvent(w.target)) {
		return target, answer, errNumbersNeedKey(a, true)
	}
	target = w.target
	if err := c.checkRate(a, w); err != nil {
		return target, answer, err
	}
	if counting {
		if err := cmp.Or(c.checkHeld(a), c.checkFault(a)); err != nil {
			return target, answer, err
		}
		if answer, err = c.count(ctx, a, &r, &w); err != nil || !answer.Later && !answer.NoNumbers {
			return target, answer, err
		}
	}
	answer, err = c.read(ctx, a, w.target, nil)
	return target, answer, err
}

// isImageProxy reports whether a User-Agent belongs to a proxy that fetches images for people: GitHub (github-camo),
// PyPI and others with Camo, and Gmail (GoogleImageProxy).
func isImageProxy(agent string) bool {
	return hasAny(strings.ToLower(agent[:min(len(agent), agentBytes)]), []string{"camo", "imageproxy"})
}
