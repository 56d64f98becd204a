package admin

import (
	"context"
	"time"

	"footfall/db"
)

// ClaimName points an app's name to a cell, unless the name already points to another cell or belongs to an app in this
// database. It returns the cell that the name points to, or "" if the app is in this database.
func (a *Admin) ClaimName(ctx context.Context, name, cell string) (led string, err error) {
	err = a.db.InTx(ctx, func(q *db.Queries) (err error) {
		led, err = q.NameClaim(ctx, name, cell)
		return err
	})
	return led, wrap("point the name "+name+" to a cell", err)
}

// LeadName points an app's name to another cell. began is the time when the app was added in the new cell, and is stored with
// the name. If a different time was stored before, the name belonged to another app, so accounts lose their rights to the
// name. If began is nil, the time is unknown: the stored time and the rights stay.
func (a *Admin) LeadName(ctx context.Context, name, from, to string, began *time.Time) error {
	return wrap("point the name "+name+" to a cell", a.db.InTx(ctx, func(q *db.Queries) error {
		_, err := q.NameLead(ctx, db.NameLeadParams{Name: name, FromCell: from, ToCell: to, Began: began})
		return err
	}))
}

// LetNameGo removes an app's name that has pointed to a cell for at least this number of seconds.
func (a *Admin) LetNameGo(ctx context.Context, name, cell string, seconds float64) error {
	return wrap("release the name "+name, a.db.InTx(ctx, func(q *db.Queries) error {
		return q.NameLetGo(ctx, db.NameLetGoParams{Name: name, Cell: cell, Seconds: seconds})
	}))
}
