package admin

import (
	"context"

	"footfall/counter/app"
	"footfall/db"
)

// PutPeople returns a function that links ids of an app's visitors to persons, like app.App.PutPeople.
func (a *Admin) PutPeople(ctx context.Context, name string) (put func(context.Context, []app.Link, map[int]string) ([]string, error),
	err error) {
	var of *app.App
	err = a.read(ctx, name, func(_ queries, row *db.App) (err error) {
		if of, err = app.New(*row, a.secret); err == nil {
			err = of.CheckPeople()
		}
		return err
	})
	return func(ctx context.Context, links []app.Link, wrong map[int]string) ([]string, error) {
		return of.PutPeople(ctx, a.db, a.secret, a.db.Now(), links, wrong)
	}, err
}
