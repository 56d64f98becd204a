package counter

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"footfall/counter/app"
	"footfall/visit"
)

// A single visit, or a question about counts, is authorized as it is admitted (admit.go).
// Callers who want more of an app are authorized once, here: to count many visits, or to read
// reports.

// AuthorizeCounting lets a caller count many visits at once, and assert their visitors, if nothing
// is wrong with the app, the key and its scope, how the call was written, the origin, and the rate,
// for which a call is one request.
func (c *Counter) AuthorizeCounting(ctx context.Context, r Request) (*Counting, error) {
	a, key, err := c.callerOf(ctx, &r)
	if err != nil {
		return nil, err
	}
	if err := checkManyRights(a, key); err != nil {
		return nil, err
	}
	if r.ParseErr != nil {
		return nil, r.ParseErr
	}
	if err := checkOrigin(a, &r); err != nil {
		return nil, err
	}
	counting := &Counting{counter: c, app: a, calls: callsOfAnybody, counted: r.Counted}
	if key != nil {
		counting.calls = fmt.Sprintf("calls of key %d", key.ID)
	}
	if r.Peer.IsValid() {
		err = c.checkRate(a, subject{address: r.Peer})
	}
	return counting, err
}

func checkManyRights(a *app.App, key *app.Key) error {
	switch {
	case a.IsOpen() || key != nil && key.Opens(app.ScopeAssert):
		return nil
	case key == nil:
		return visit.Errorf(visit.BadKey, "key", "app %s takes many visits at once only with one of the scope %s: send it as Authorization: Bearer …",
			a.Name, app.ScopeAssert)
	}
	return visit.Errorf(visit.Forbidden, "key", "it does not say who came: send one of the scope %s", app.ScopeAssert)
}

// AuthorizeOperator lets a command count visits of an app, by whomever they are: those who have the
// database need no key.
func (c *Counter) AuthorizeOperator(ctx context.Context, name string) (*Counting, error) {
	register, err := c.apps.Current(ctx)
	if err != nil {
		return nil, err
	}
	a := register.Apps[name]
	switch {
	case a == nil:
		return nil, app.NoApp(name)
	case a.Fault != nil:
		return nil, visit.Errorf(visit.Invalid, "app", "%v", a.Fault)
	}
	return &Counting{counter: c, app: a}, nil
}

// AuthorizeReading lets a caller read the reports of an app, if nothing is wrong with the app, the
// key or the session and its scope, and how the question was written. The Reading then reads targets
// and visitors of the question; CheckRate is the last check.
func (c *Counter) AuthorizeReading(ctx context.Context, r Request) (*Reading, error) {
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
	reading := c.readingOf(a, r.Peer)
	reading.Names = key != nil && key.Opens(app.ScopeRead)
	return reading, nil
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

// AuthorizeReadings lets a caller read every app that is open, or of which they have a session. It
// returns them by name.
func (c *Counter) AuthorizeReadings(ctx context.Context, session func(app string) string) (readings []*Reading, err error) {
	register, err := c.apps.Current(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range register.Apps {
		if a.IsOpen() || c.sessionKey(register, a, session(a.Name)) != nil {
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
	if wait := c.rates.take(sourceOf(wrongLinks, peer), mostTries); wait > 0 {
		c.metrics.limited.Inc()
		refused := visit.Errorf(visit.TooMany, "", "too many links that show nothing were followed from one address; try again in a minute")
		refused.RetryAfter = wait
		return nil, refused
	}
	return nil, ErrNoShare
}

// ErrNoShare says that a link shows nothing.
var ErrNoShare = visit.Errorf(visit.NotFound, "", "this link shows nothing: it is not written as it was sent, it was revoked, or its time is over")
