package counter

import (
	"context"
	"net/netip"

	"footfall/visit"
)

// Reading is the permission to read what was counted for an app.
type Reading struct {
	App   string
	Today int32 // in the app's time zone

	counter  *Counter
	app      *app
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
	if err := a.checkReportRights(key); err != nil {
		return nil, err
	}
	if r.ParseErr != nil {
		return nil, r.ParseErr
	}
	return &Reading{App: a.name, Today: visit.DayOf(c.clock(), a.zone), counter: c, app: a, peer: r.Peer}, nil
}

func (a *app) checkReportRights(key *openKey) error {
	switch {
	case a.isOpen() || key != nil && key.opens(ScopeRead):
		return nil
	case key == nil:
		return visit.Errorf(visit.BadKey, "key", "the reports of app %s need one: send one of the scope %s as Authorization: Bearer …", a.name, ScopeRead)
	}
	return visit.Errorf(visit.Forbidden, "key", "it opens no reports: send one of the scope %s", ScopeRead)
}

// Target reads a page or a site as visit.ParseTarget does, with the query parameters that the app
// keeps.
func (r *Reading) Target(text string) (string, error) {
	return visit.ParseTarget(text, r.app.keepQuery)
}

// Visitor returns the visitor that an address, or an id where the app tells visitors apart by ids,
// stands for today.
func (r *Reading) Visitor(ctx context.Context, ip, id string) (netip.Addr, error) {
	if r.app.fault != nil {
		return netip.Addr{}, visit.Errorf(visit.Unavailable, "", "visitors of app %s cannot be found by this instance; tell its operator", r.App).Because(r.app.fault)
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
