package counter

import (
	"context"

	"footfall/counter/app"
)

// People is the permission to say, or to ask, whom ids of an app's visitors stand for.
type People struct {
	counter *Counter
	app     *app.App
}

// AuthorizePuttingPeople lets a caller say whom ids stand for, if nothing is wrong with the app, the
// key and its scope, how the call was written, the origin, and the rate.
func (c *Counter) AuthorizePuttingPeople(ctx context.Context, r Request) (*People, error) {
	return c.authorizePeople(ctx, &r, app.ScopeAssert, "app %s is told who is who only with one", "it does not say who is who")
}

// AuthorizeFindingPeople lets a caller ask whom ids stand for, likewise.
func (c *Counter) AuthorizeFindingPeople(ctx context.Context, r Request) (*People, error) {
	return c.authorizePeople(ctx, &r, app.ScopeRead, "app %s tells who is who only with one", "it does not open who is who")
}

func (c *Counter) authorizePeople(ctx context.Context, r *Request, scope app.Scope, without, with string) (*People, error) {
	a, _, err := c.authorize(ctx, r, scope, without, with)
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

// Put writes what is said of ids, as app.App.PutPeople does.
func (p *People) Put(ctx context.Context, said []app.Said, wrong map[int]string) (faults []string, err error) {
	return p.app.PutPeople(ctx, p.counter.db, p.counter.secret, p.counter.clock(), said, wrong)
}

// Find finds whom ids stand for.
func (p *People) Find(ctx context.Context, ids []string) ([]app.Whom, error) {
	ctx, cancel := p.counter.db.InTime(ctx)
	defer cancel()
	return p.app.FindPeople(ctx, p.counter.db, p.counter.secret, ids)
}
