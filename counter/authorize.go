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

// A single visit, or a question about counts, is authorized as it is admitted (visit.go).
// Callers who want more of an app are authorized once, here: to count many visits, or to read
// reports.

// AuthorizeCounting lets a caller count many visits at once, and assert their visitors, if nothing
// is wrong with the app, the key and its scope, how the call was written, the origin, and the rate,
// for which a call is one request.
func (c *Counter) AuthorizeCounting(ctx context.Context, r Request) (*Counting, error) {
	a, key, err := c.authorize(ctx, &r, app.ScopeAssert, "takes many visits at once")
	if err != nil {
		return nil, err
	}
	if err := checkOrigin(a, &r); err != nil {
		return nil, err
	}
	counting := &Counting{counter: c, app: a, calls: callsOfAnybody, counted: r.Counted, keyless: key == nil}
	if key != nil {
		counting.calls = fmt.Sprintf("calls of key %d", key.ID)
	}
	if r.Peer.IsValid() {
		err = c.checkRate(a, subject{address: r.Peer})
	}
	return counting, err
}

// authorize checks the app, the key, that it has a scope unless the app is open (to readers: and public; to nobody who
// changes it), and how the request was written. does is what the app does with a key of the scope alone.
func (c *Counter) authorize(ctx context.Context, r *Request, scope app.Scope, does string) (*app.App, *app.Key, error) {
	a, key, err := c.callerOf(ctx, r)
	switch {
	case err != nil:
		return nil, nil, err
	case scope == app.ScopeRead && (a.IsPublic() || r.looks(a)) || scope == app.ScopeAssert && a.IsOpen() || key != nil && key.Opens(scope):
		return a, key, r.ParseErr
	case key == nil:
		return nil, nil, visit.Errorf(visit.BadKey, "key", "app %s %s only with a key of the scope %s: send it as Authorization: Bearer …",
			a.Name, does, scope)
	}
	return nil, nil, visit.Errorf(visit.Forbidden, "key", "app %s %s only with a key of the scope %s, which this one does not have", a.Name,
		does, scope)
}

// looks reports whether the caller is signed in as somebody who may look at an app.
func (r *Request) looks(a *app.App) bool { return r.MayLook != nil && r.MayLook(a.Name) }

// AuthorizeOperator lets a command count visits of an app, by whomever they are: those who have the
// database need no key.
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

// AuthorizeAdmin lets a caller change an app who shows a key of it of the scope admin. Nobody does so
// without one, whoever may count.
func (c *Counter) AuthorizeAdmin(ctx context.Context, r Request) error {
	a, _, err := c.authorize(ctx, &r, app.ScopeAdmin, "is changed")
	if err != nil {
		return err
	}
	return c.checkRate(a, subject{address: r.Peer})
}

// AuthorizeReading lets a caller read the reports of an app, if nothing is wrong with the app, the
// key and its scope or the account, and how the question was written. The Reading then reads targets
// and visitors of the question; CheckRate is the last check.
func (c *Counter) AuthorizeReading(ctx context.Context, r Request) (*Reading, error) {
	a, key, err := c.authorize(ctx, &r, app.ScopeRead, "opens its reports")
	if err != nil {
		return nil, err
	}
	reading := c.readingOf(a, r.Peer)
	reading.Names = r.looks(a) || key != nil && key.Opens(app.ScopeRead)
	return reading, nil
}

// AuthorizeTop lets everybody list the most visited pages of a site, if the app makes them public, and returns the
// app's current day.
func (c *Counter) AuthorizeTop(ctx context.Context, r Request, site string) (today int32, err error) {
	a, key, err := c.callerOf(ctx, &r)
	if err == nil {
		err = checkRights(a, &r, key, app.ScopeRead)
	}
	switch {
	case err != nil:
		return 0, err
	case !a.ListsTop():
		return 0, visit.Errorf(visit.Forbidden, "", "app %s lists no pages in public: its operator can set --public-top on, and --public-counts "+
			"to other than off", a.Name)
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

// AuthorizeReadings lets a caller read every app that is open, or that they may look at. It returns
// them by name. The app to try out with is none where there is another one.
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

// AuthorizeLink lets those who follow a link read what it shows: an app, or one site of it. A link
// that shows nothing is ErrNoShare, for any reason; from an address that follows many of them it is
// visit.TooMany.
func (c *Counter) AuthorizeLink(ctx context.Context, token string, peer netip.Addr) (*Reading, error) {
	register, err := c.apps.Current(ctx)
	if err != nil {
		return nil, err
	}
	if s, found := register.Share(token); found {
		reading := c.readingOf(s.App, peer)
		reading.Site, reading.stranger = s.Site, true
		if reading.Today <= s.LastDay {
			return reading, nil
		}
	}
	return nil, cmp.Or(c.TryLink(peer), error(ErrNoShare))
}

// ErrNoShare says that a link shows nothing.
var ErrNoShare = visit.Errorf(visit.NotFound, "",
	"this link shows nothing: it is not written as it was sent, it was revoked, or its time is over")

// Reading is the permission to read what was counted for an app.
type Reading struct {
	App   string
	Site  string // the one that a link shows; "": all of the app
	Today int32  // in Zone, that of the app
	Hour  int    // of today that it is
	Zone  *time.Location
	Open  bool // everybody may read
	Names bool // they may see on pages who came: by a key or an account alone, also where everybody may see the numbers

	counter  *Counter
	app      *app.App
	peer     netip.Addr
	stranger bool // shows neither a key nor an account
}

func (c *Counter) readingOf(a *app.App, peer netip.Addr) *Reading {
	now := c.clock()
	return &Reading{App: a.Name, Today: visit.DayOf(now, a.Zone), Hour: now.In(a.Zone).Hour(), Zone: a.Zone, Open: a.IsPublic(), counter: c,
		app: a, peer: peer}
}

// Goals are those of the app, as conditions of filters.
func (r *Reading) Goals() []string { return r.app.Goals }

// Public names the numbers that anybody is told.
func (r *Reading) Public() string { return r.app.PublicCounts }

// Target reads a page or a site as visit.ParseTarget does, with the query parameters that the app
// keeps.
func (r *Reading) Target(text string) (string, error) {
	return visit.ParseTarget(text, r.app.KeepQuery)
}

// Visitors returns the visitor that an address, or an id where the app tells visitors apart by ids,
// stands for today; where browsers are told apart, all who may be behind the address.
func (r *Reading) Visitors(ctx context.Context, ip, id string) ([]netip.Addr, error) {
	if r.app.Fault != nil {
		return nil, visit.Errorf(visit.Unavailable, "", "visitors of app %s cannot be found by this instance; tell its operator",
			r.App).Because(r.app.Fault)
	}
	w := subject{day: r.Today}
	ask := Request{IP: ip, Visitor: id, Anybody: r.app.Mode == app.ByBrowser}
	if err := r.counter.identifyVisitor(ctx, r.app, &ask, &w); err != nil {
		return nil, err
	}
	if ask.Anybody {
		return r.app.VisitorsByAddress(r.counter.secret, w.address, nil)
	}
	return []netip.Addr{w.visitor}, nil
}

// CheckRate refuses callers who ask too often. For those who may read reports only a limit that the
// app has chosen holds, but for those who have a link the usual one, too.
func (r *Reading) CheckRate() error {
	return r.counter.checkRate(r.app, subject{address: r.peer, untrusted: r.stranger})
}

// Sites are those that the app lists, *.host for the subdomains of a host.
func (r *Reading) Sites() []string { return slices.Sorted(slices.Values(r.app.Sites)) }
