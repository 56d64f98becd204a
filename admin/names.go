package admin

import (
	"context"
	"time"

	"footfall/db"
)

// ClaimName lets the name of an app lead to a cell, unless it leads elsewhere, and returns to which cell it
// leads; "": to none, since the app is here.
func (a *Admin) ClaimName(ctx context.Context, name, cell string) (led string, err error) {
	err = a.db.InTx(ctx, func(q *db.Queries) (err error) {
		led, err = q.NameClaim(ctx, name, cell)
		return err
	})
	return led, wrap("lead the name "+name, err)
}

// LeadName lets a name that leads to a cell lead to another one, or the same, where its app began. Those who had
// rights to an app that began at another time have none to this one. nil: it is not known when.
func (a *Admin) LeadName(ctx context.Context, name, from, to string, began *time.Time) error {
	return wrap("lead the name "+name, a.db.InTx(ctx, func(q *db.Queries) error {
		_, err := q.NameLead(ctx, db.NameLeadParams{Name: name, FromCell: from, ToCell: to, Began: began})
		return err
	}))
}

// LetNameGo lets a name lead nowhere any more that has led to a cell for so many seconds.
func (a *Admin) LetNameGo(ctx context.Context, name, cell string, seconds float64) error {
	return wrap("let the name "+name+" go", a.db.InTx(ctx, func(q *db.Queries) error {
		return q.NameLetGo(ctx, db.NameLetGoParams{Name: name, Cell: cell, Seconds: seconds})
	}))
}
