package counter

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"footfall/counter/app"
	"footfall/visit"
)

// admit (visit.go) authorizes a single visit or query. The functions here authorize a caller once for many operations: to count
// many visits, or to read reports.

// AuthorizeCounting lets a caller count many visits at once, of any visitors. It checks the app, the key and its scope, the
// syntax of the call, the origin, and the rate limit. For this limit, a call counts as one request.
func (c *Counter) AuthorizeCounting(ctx context.Context, r Request) (*Counting, error) {
	a, key, err := c.authorize(ctx, &r, app.ScopeAssert, "accepts many visits at once")
	if err != nil {
		return nil, err
	}
	if err := checkOrigin(a, &r); err != nil {
		return nil, err
	}
	counting := &Counting{counter: c, app: a, callSource: callsOfAnybody, onlyCounted: r.OnlyCounted, keyless: key == nil}
	if key != nil {
		counting.callSource = fmt.Sprintf("calls of key %d", key.ID)
	}
	if r.Peer.IsValid() {
		err = c.checkRate(a, subject{address: r.Peer})
	}
	return counting, err
}

// authorize checks the app, the key and its scope, and the syntax of the request. An open app needs no key for the scope
// assert, and a public app needs no key for the scope read. The scope admin always needs a key. In error messages, does is
// the action that the scope allows.
func (c *Counter) authorize(ctx context.Context, r *Request, scope app.Scope, does string) (*app.App, *app.Key, error) {
	a, key, err := c.findCaller(ctx, r)
	switch {
	case err != nil:
		return nil, nil, err
	case scope == app.ScopeRead && (a.IsPublic() || r.isSignedInFor(a)) || scope == app.ScopeAssert && a.IsOpen() ||
		key != nil && key.Opens(scope):
		return a, key, r.ParseErr
	case key == nil:
		return nil, nil, visit.Errorf(visit.BadKey, "key", "app %s %s only with a key of the scope %s: send it as Authorization: Bearer …",
			a.Name, does, scope)
	}
	return nil, nil, visit.Errorf(visit.Forbidden, "key", "app %s %s only with a key of the scope %s, which this one does not have", a.Name,
		does, scope)
}

// isSignedInFor reports whether the caller is signed in as a user who may see an app.
func (r *Request) isSignedInFor(a *app.App) bool { return r.MayLook != nil && r.MayLook(a.Name) }

// AuthorizeOperator lets a command count visits of an app for any visitors. Operators with access to the database need
// no key.
func (c *Counter) AuthorizeOperator(ctx context.Context, name string) (*Counting, error) {
	register, err := c.apps.Current(ctx)
	if err != nil {
		return nil, err
	}
	a, cell := register.Apps[name], register.Cells[name]
	switch {
	case cell != "":
		return nil, app.InCell(name, cell)
	case a == nil:
		return nil, app.NoApp(name)
	case a.Fault != nil:
		return nil, visit.Errorf(visit.Invalid, "app", "%v", a.Fault)
	}
	return &Counting{counter: c, app: a}, nil
}

// AuthorizeAdmin lets a caller change an app if it has a key with the scope admin. Even an open app needs the key.
func (c *Counter) AuthorizeAdmin(ctx context.Context, r Request) error {
	a, _, err := c.authorize(ctx, &r, app.ScopeAdmin, "can be changed")
	if err != nil {
		return err
	}
	return c.checkRate(a, subject{address: r.Peer})
}

// AuthorizeReading lets a caller read the reports of an app. It checks the app, the account or the key and its scope,
// and the syntax of the query. The caller then uses the Reading to parse targets and visitors, and finally calls
// CheckRate.
func (c *Counter) AuthorizeReading(ctx context.Context, r Request) (*Reading, error) {
	a, key, err := c.authorize(ctx, &r, app.ScopeRead, "shows its reports")
	if err != nil {
		return nil, err
	}
	reading := c.readingOf(a, r.Peer)
	reading.Names = r.isSignedInFor(a) || key != nil && key.Opens(app.ScopeRead)
	return reading, nil
}

// AuthorizeTop lets any caller list the most visited pages of a site if the app makes this list public. It returns the
// current day in the app's time zone.
func (c *Counter) AuthorizeTop(ctx context.Context, r Request, site string) (today int32, err error) {
	a, key, err := c.findCaller(ctx, &r)
	if err == nil {
		err = checkRights(a, &r, key, app.ScopeRead)
	}
	switch {
	case err != nil:
		return 0, err
	case !a.HasPublicTop():
		return 0, visit.Errorf(visit.Forbidden, "", "app %s has no public list of pages: its operator can set --public-top on, "+
			"and --public-counts to another value than off", a.Name)
	case r.ParseErr != nil:
		return 0, r.ParseErr
	case !a.Lists(site):
		return 0, visit.Errorf(visit.Invalid, "site", "app %s does not list the site %s: its operator can add it (app site add)", a.Name, site)
	}
	if err := checkOrigin(a, &r); err != nil {
		return 0, err
	}
	return visit.DayOf(c.clock(), a.Zone), c.checkRate(a, subject{address: r.Peer, untrusted: !a.IsOpen() && key == nil})
}

// AuthorizeReadings lets a caller read every app that is public or that mayLook allows. It returns the readings in the order of
// the apps' names. The demo app is left out if there are other apps.
func (c *Counter) AuthorizeReadings(ctx context.Context, mayLook func(app string) bool) (readings []*Reading, err error) {
	register, err := c.apps.Current(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range register.Apps {
		if (a.IsPublic() || mayLook(a.Name)) && (len(register.Apps) == 1 || !app.IsDemo(&a.App)) {
			readings = append(readings, c.readingOf(a, netip.Addr{}))
		}
	}
	slices.SortFunc(readings, func(a, b *Reading) int { return cmp.Compare(a.App, b.App) })
	return readings, nil
}

// AuthorizeLink lets the holder of a share link read the reports of the app or site that the link shares. It returns
// ErrNoShare if the link is invalid, for any reason. After too many invalid links from one address, the error is of the
// kind visit.TooMany.
func (c *Counter) AuthorizeLink(ctx context.Context, token string, peer netip.Addr) (*Reading, error) {
	register, err := c.apps.Current(ctx)
	if err != nil {
		return nil, err
	}
	if s, found := register.Share(token); found {
		reading := c.readingOf(s.App, peer)
		reading.Site, reading.isAnonymous = s.Site, true
		if reading.Today <= s.LastDay {
			return reading, nil
		}
	}
	return nil, cmp.Or(c.TryLink(peer), error(ErrNoShare))
}

// ErrNoShare reports that a share link is invalid.
var ErrNoShare = visit.Errorf(visit.NotFound, "",
	"this link shows nothing: it was copied incompletely, was revoked, or has expired")

// Reading is the permission to read the reports of an app.
type Reading struct {
	App   string
	Site  string // the only site that a share link shows; "": the whole app
	Today int32  // in the app's time zone
	Hour  int    // current hour in Zone
	Zone  *time.Location
	Open  bool // the app is public
	Names bool // the caller may see visitors' identities: needs a key or an account, even if the numbers are public

	counter     *Counter
	app         *app.App
	peer        netip.Addr
	isAnonymous bool // the caller has neither a key nor an account
}

func (c *Counter) readingOf(a *app.App, peer netip.Addr) *Reading {
	now := c.clock()
	return &Reading{App: a.Name, Today: visit.DayOf(now, a.Zone), Hour: now.In(a.Zone).Hour(), Zone: a.Zone, Open: a.IsPublic(), counter: c,
		app: a, peer: peer}
}

// Goals returns the app's goals, as filter conditions.
func (r *Reading) Goals() []string { return r.app.Goals }

// Public returns the app's setting public-counts.
func (r *Reading) Public() string { return r.app.PublicCounts }

// Target parses a page or a site, see visit.ParseTarget. The result keeps only the query parameters that distinguish pages
// of this app.
func (r *Reading) Target(text string) (string, error) {
	return visit.ParseTarget(text, r.app.KeepQuery)
}

// Visitors returns the visitor to whom an address or an id belongs today. If the app distinguishes browsers, it returns a
// visitor for each browser, because any of them may use the address.
func (r *Reading) Visitors(ctx context.Context, ip, id string) ([]netip.Addr, error) {
	if r.app.Fault != nil {
		return nil, visit.Errorf(visit.Unavailable, "",
			"this instance cannot identify visitors of app %s; report this to its operator",
			r.App).Because(r.app.Fault)
	}
	w := subject{day: r.Today}
	ask := Request{IP: ip, Visitor: id, HasNoVisitor: r.app.Mode == app.ByBrowser}
	if err := r.counter.identifyVisitor(ctx, r.app, &ask, &w); err != nil {
		return nil, err
	}
	if ask.HasNoVisitor {
		return r.app.VisitorsByAddress(r.counter.secret, w.address, nil)
	}
	return []netip.Addr{w.visitor}, nil
}

// CheckRate refuses callers that send too many requests. The app's setting max-requests is the limit. If the app does not set
// it, the default limit applies to share links, and other readers have no limit.
func (r *Reading) CheckRate() error {
	return r.counter.checkRate(r.app, subject{address: r.peer, untrusted: r.isAnonymous})
}

// Sites returns the sites that the app lists, with *.host for the subdomains of a host.
func (r *Reading) Sites() []string { return slices.Sorted(slices.Values(r.app.Sites)) }
