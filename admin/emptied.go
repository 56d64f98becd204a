package admin

import (
	"cmp"
	"context"

	"footfall/counter/app"
	"footfall/db"
)

// emptied empties what an app keeps no longer by settings that have been made.
func (a *Admin) emptied(ctx context.Context, name string, s app.Settings, set *db.App) (err error) {
	if s.Filters != nil && !set.Filters {
		err = wrap("empty the tags of visits of app "+name, a.emptyTags(ctx, set.ID))
	}
	if s.Titles != nil && !set.Titles {
		gone := a.inTx(ctx, func(q queries) error { return q.TitlesDelete(ctx, set.ID) })
		err = cmp.Or(err, wrap("delete the titles of pages of app "+name, gone))
	}
	return err
}

// emptiedAtOnce is how many rows a transaction empties, for which visits hardly wait.
const emptiedAtOnce = 5000

// emptyTags takes the tags out of all rows of an app's visits.
func (a *Admin) emptyTags(ctx context.Context, app int32) error {
	var days []SiteDaysRow
	err := a.inTx(ctx, func(q queries) (err error) { days, err = q.SiteDays(ctx, app); return err })
	for i := 0; i < len(days) && err == nil; {
		var emptied int64
		err = a.inTx(ctx, func(q queries) (err error) {
			emptied, err = q.VisitTagsEmpty(ctx, VisitTagsEmptyParams{Site: days[i].Site, Day: days[i].Day, Most: emptiedAtOnce})
			return err
		})
		if emptied < emptiedAtOnce {
			i++
		}
	}
	return err
}
