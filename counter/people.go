package counter

import (
	"context"

	"footfall/counter/app"
)

// People is the permission to link ids of an app's visitors to persons, or to look the persons up.
type People struct {
	counter *Counter
	app     *app.App
}

// AuthorizePuttingPeople lets a caller link ids to persons. It checks the app, the key and its scope, the syntax of the
// call, the origin, and the rate. It also checks that counting for the app is not paused.
func (c *Counter) AuthorizePuttingPeople(ctx context.Context, r Request) (*People, error) {
	p, err := c.authorizePeople(ctx, &r, app.ScopeAssert, "accepts links between ids")
	if err == nil {
		err = c.checkHeld(p.app)
	}
	return p, err
}

// AuthorizeFindingPeople lets a caller look up persons. It makes the same checks as AuthorizePuttingPeople, but counting
// for the app may be paused.
func (c *Counter) AuthorizeFindingPeople(ctx context.Context, r Request) (*People, error) {
	return c.authorizePeople(ctx, &r, app.ScopeRead, "looks up people")
}

func (c *Counter) authorizePeople(ctx context.Context, r *Request, scope app.Scope, does string) (*People, error) {
	a, _, err := c.authorize(ctx, r, scope, does)
	if err != nil {
		return nil, err
	}
	if err := a.CheckPeople(); err != nil {
		return nil, err
	}
	if err := checkOrigin(a, r); err != nil {
		return nil, err
	}
	return &People{c, a}, c.checkRate(a, subject{address: r.Peer})
}

// Put writes links from ids to persons. See app.App.PutPeople for the parameters and results.
func (p *People) Put(ctx context.Context, links []app.Link, wrong map[int]string) (faults []string, err error) {
	return p.app.PutPeople(ctx, p.counter.db, p.counter.secret, p.counter.clock(), links, wrong)
}

// Find looks up the persons of ids.
func (p *People) Find(ctx context.Context, ids []string) ([]app.Person, error) {
	ctx, cancel := p.counter.db.InTime(ctx)
	defer cancel()
	return p.app.FindPeople(ctx, p.counter.db, p.counter.secret, ids)
}
