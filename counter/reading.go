package counter

import (
	"context"
	"net/netip"
	"time"

	"footfall/counter/app"
	"footfall/visit"
)

// Reading is the permission to read what was counted for an app.
type Reading struct {
	App   string
	Site  string // the one that a link shows; "": all of the app
	Today int32  // in Zone, that of the app
	Zone  *time.Location
	Open  bool // everybody may read
	Names bool // they may see on pages who came: by a key alone, also where everybody may see the numbers

	counter  *Counter
	app      *app.App
	peer     netip.Addr
	stranger bool // shows neither a key nor a session
}

func (c *Counter) readingOf(a *app.App, peer netip.Addr) *Reading {
	return &Reading{App: a.Name, Today: visit.DayOf(c.clock(), a.Zone), Zone: a.Zone, Open: a.IsOpen(), counter: c, app: a, peer: peer}
}

// Target reads a page or a site as visit.ParseTarget does, with the query parameters that the app
// keeps.
func (r *Reading) Target(text string) (string, error) {
	return visit.ParseTarget(text, r.app.KeepQuery)
}

// Visitor returns the visitor that an address, or an id where the app tells visitors apart by ids,
// stands for today.
func (r *Reading) Visitor(ctx context.Context, ip, id string) (netip.Addr, error) {
	if r.app.Fault != nil {
		return netip.Addr{}, visit.Errorf(visit.Unavailable, "", "visitors of app %s cannot be found by this instance; tell its operator", r.App).Because(r.app.Fault)
	}
	w := subject{day: r.Today}
	if err := r.counter.identifyVisitor(ctx, r.app, &Request{IP: ip, Visitor: id}, &w); err != nil {
		return netip.Addr{}, err
	}
	return w.visitor, nil
}

// CheckRate refuses callers who ask too often. For those who may read reports only a limit that the
// app has chosen holds, but for those who have a link the usual one, too.
func (r *Reading) CheckRate() error {
	return r.counter.checkRate(r.app, subject{address: r.peer, untrusted: r.stranger})
}

// Sites are those that the app lists, *.host for the subdomains of a host.
func (r *Reading) Sites() []string { return r.app.Sites() }
