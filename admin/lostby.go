package admin

import (
	"cmp"
	"context"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// LostBy describes the data that an app would lose if its settings were changed to s. The result is empty if no data would be
// lost, which is the usual case. LostBy returns an error if the settings are invalid (app.Settings.Apply).
func (a *Admin) LostBy(ctx context.Context, name string, s app.Settings) (lost []visit.Text, err error) {
	row, err := a.AppNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	is := row
	if err := s.Apply(&is, a.secret); err != nil {
		return nil, err
	}
	shorter := func(was, is int32) bool { return is != was && is > 0 && (was == 0 || is < was) }
	lose := func(loses bool, format string, values ...any) {
		if loses {
			lost = append(lost, visit.Textf(format, values...))
		}
	}
	lose(shorter(row.RetainDays, is.RetainDays),
		"All visit rows except the last %d days will be deleted, including the record of each day's visitors.",
		is.RetainDays)
	lose(shorter(row.ForgetDays, is.ForgetDays), "Visitors who have not visited for %d days will be forgotten.", is.ForgetDays)
	lose(row.Filters && !is.Filters, "The record of each visitor's combination of tags will be deleted.")
	lose(row.Titles && !is.Titles, "The titles of its pages will be deleted.")
	hashes := row.Visitor == app.ByAddress && is.Visitor == app.ByHash
	lose(hashes, "All visitors' addresses will be replaced by hashes, which takes about a minute per million; until then visits are "+
		"answered with 503. It continues if you leave this page, and changes everything or nothing.")
	lose(row.Visitor != is.Visitor && !hashes,
		"From now on, visitors will be distinguished in another way. Earlier visitors will not be recognised when they return.")
	return lost, nil
}

// deleteUnkept deletes tags and titles that an app's new settings no longer keep. It fails while the app is moving to another
// database, because data that is not deleted yet would be moved, too. After the move, the operator must change the settings
// again.
func (a *Admin) deleteUnkept(ctx context.Context, name string, s app.Settings, set *db.App) (err error) {
	if s.Filters != nil && !set.Filters {
		err = wrap("empty the tags of visits of app "+name, a.RunLong(ctx, name, func(ctx context.Context, a *Admin) error {
			return a.emptyTags(ctx, name)
		}))
	}
	if s.Titles != nil && !set.Titles {
		gone := a.withLockedApp(ctx, name, queries.AppShare, func(q queries, row *db.App) error { return q.TitlesDelete(ctx, row.ID) })
		err = cmp.Or(err, wrap("delete the titles of pages of app "+name, gone))
	}
	return err
}

// emptiedAtOnce is the number of rows that one transaction changes. With so few rows, the transaction hardly delays visits.
const emptiedAtOnce = 5000

// emptyTags deletes the tags in all visit rows of an app.
func (a *Admin) emptyTags(ctx context.Context, name string) error {
	var days []SiteDaysRow
	err := a.withLockedApp(ctx, name, queries.AppShare, func(q queries, row *db.App) (err error) {
		days, err = q.SiteDays(ctx, row.ID)
		return err
	})
	for i := 0; i < len(days) && err == nil; {
		var emptied int64
		err = a.withLockedApp(ctx, name, queries.AppShare, func(q queries, _ *db.App) (err error) {
			emptied, err = q.VisitTagsEmpty(ctx, VisitTagsEmptyParams{Site: days[i].Site, Day: days[i].Day, Most: emptiedAtOnce})
			return err
		})
		if emptied < emptiedAtOnce {
			i++
		}
	}
	return err
}
