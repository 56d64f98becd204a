package counter

import (
	"context"

	"footfall/counter/app"
	"footfall/visit"
)

// AuthorizeAdmin lets a caller change an app who shows a key of it of the scope admin. Nobody does so
// without one, whoever may count.
func (c *Counter) AuthorizeAdmin(ctx context.Context, r Request) error {
	a, key, err := c.callerOf(ctx, &r)
	switch {
	case err != nil:
		return err
	case key == nil:
		return visit.Errorf(visit.BadKey, "key", "app %s is changed only with a key of the scope %s: send it as Authorization: Bearer …", a.Name,
			app.ScopeAdmin)
	case !key.Opens(app.ScopeAdmin):
		return visit.Errorf(visit.Forbidden, "key", "app %s is changed only with a key of the scope %s, which this one does not have", a.Name,
			app.ScopeAdmin)
	}
	return c.checkRate(a, subject{address: r.Peer})
}
