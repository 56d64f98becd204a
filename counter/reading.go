package counter

import (
	"context"
	"net/netip"

	"footfall/counter/app"
	"footfall/visit"
)

// Reading is the permission to read what was counted for an app.
type Reading struct {
	App   string
	Today int32 // in the app's time zone

	counter  *Counter
	app      *app.App
	peer     netip.Addr
	stranger bool // shows neither a key nor a session
	names    bool // may see who came, where pages are looked at
}

// Reads checks that a caller may read the reports of an app: the app, the key and its scope, and
// whether the question could be parsed. The Reading then reads targets and visitors of the
// question; CheckRate is the last check.
func (c *Counter) Reads(ctx context.Context, r Request) (*Reading, error) {
	a, key, err := c.callerOf(ctx, &r)
	if err != nil {
		return nil, err
	}
	if err := checkReportRights(a, key); err != nil {
		return nil, err
	}
	if r.ParseErr != nil {
		return nil, r.ParseErr
	}
	return &Reading{App: a.Name, Today: visit.DayOf(c.clock(), a.Zone), counter: c, app: a, peer: r.Peer}, nil
}

func checkReportRights(a *app.App, key *app.Key) error {
	switch {
	case a.IsOpen() || key != nil && key.Opens(app.ScopeRead):
		return nil
	case key == nil:
		return visit.Errorf(visit.BadKey, "key", "the reports of app %s need one: send one of the scope %s as Authorization: Bearer …", a.Name, app.ScopeRead)
	}
	return visit.Errorf(visit.Forbidden, "key", "it opens no reports: send one of the scope %s", app.ScopeRead)
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

// Shared returns the permission to look at what a link shows: an app, or one site of it ("": all).
// A link that shows nothing is visit.NotFound, whatever the reason; from an address that sends many
// of them it is visit.TooMany.
func (c *Counter) Shared(ctx context.Context, token string, peer netip.Addr) (r *Reading, site string, err error) {
	register, err := c.apps.Current(ctx)
	if err != nil {
		return nil, "", err
	}
	if s, found := register.Share(token); found {
		if today := visit.DayOf(c.clock(), s.App.Zone); today <= s.LastDay {
			return &Reading{App: s.App.Name, Today: today, counter: c, app: s.App, peer: peer, stranger: true}, s.Site, nil
		}
	}
	if wait := c.rates.take(sourceOf(wrongLinks, peer), mostTries); wait > 0 {
		c.metrics.limited.Inc()
		refused := visit.Errorf(visit.TooMany, "", "too many links that show nothing were followed from one address; try again in a minute")
		refused.RetryAfter = wait
		return nil, "", refused
	}
	return nil, "", ErrNoShare
}

// ErrNoShare says that a link shows nothing.
var ErrNoShare = visit.Errorf(visit.NotFound, "", "this link shows nothing: it is not written as it was sent, it was revoked, or its time is over")

// Sites are those that the app lists, *.host for the subdomains of a host.
func (r *Reading) Sites() []string { return r.app.Sites() }
