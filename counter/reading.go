package counter

import (
	"context"
	"footfall/visit"
	"net/netip"
)

// Reading is leave to read what was counted for an app.
type Reading struct {
	App   string
	Today int32 // the day that it is for the app

	counter *Counter
	app     *app
	peer    netip.Addr
}

// Reads checks who asks for reports of an app: the app, the key and what it opens, and whether the question can be read. What is asked
// is the Reading's to understand; then Restrain has the last word.
func (c *Counter) Reads(ctx context.Context, r Request) (*Reading, error) {
	now, err := c.apps.now(ctx)
	if err != nil {
		return nil, err
	}
	a, err := now.app(r.App)
	if err != nil {
		return nil, err
	}
	key, err := c.keyOf(now, a, &r)
	if err != nil {
		return nil, err
	}
	if err := a.permitReports(key); err != nil {
		return nil, err
	}
	if r.Garbled != nil {
		return nil, r.Garbled
	}
	return &Reading{App: a.name, Today: visit.DayOf(c.clock(), a.zone), counter: c, app: a, peer: r.Peer}, nil
}

func (a *app) permitReports(key *openKey) error {
	switch {
	case a.isOpen() || key != nil && key.opens(ScopeRead):
		return nil
	case key == nil:
		return visit.Errorf(visit.BadKey, "key", "the reports of app %s are for those who have one: send one of the scope %s as Authorization: Bearer …", a.name, ScopeRead)
	}
	return visit.Errorf(visit.Forbidden, "key", "it opens no reports: send one of the scope %s", ScopeRead)
}

// Target is the page or site that somebody has written, as visit.ParseTarget reads it.
func (r *Reading) Target(text string) (string, error) {
	target, err := visit.ParseTarget(text, r.app.keepQuery)
	if err != nil {
		return "", err
	}
	return target, nil
}

// Visitor is whom an address, or an id where the app has ids, stands for today.
func (r *Reading) Visitor(ctx context.Context, ip, id string) (netip.Addr, error) {
	if r.app.fault != nil {
		return netip.Addr{}, visit.Errorf(visit.Unavailable, "", "visitors of app %s cannot be found by this instance; tell its operator", r.App).Because(r.app.fault)
	}
	w := who{day: r.Today}
	if err := r.counter.identifyVisitor(ctx, r.app, &Request{IP: ip, Visitor: id}, &w); err != nil {
		return netip.Addr{}, err
	}
	return w.visitor, nil
}

// Restrain refuses who asks too often. Only a limit that the app has chosen holds for those who are let at its reports.
func (r *Reading) Restrain() error {
	return r.counter.restrain(r.app, who{address: r.peer})
}
