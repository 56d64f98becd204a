package admin

import (
	"context"
	"strings"
	"time"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

const (
	shareDays     = 90   // for which a link shows something, unless its maker says otherwise
	mostShareDays = 1826 // five years: the table knows
)

// Share is what is known of a link. The link itself is known to those alone who have it.
type Share struct {
	Name    string
	Site    string // "": all of the app
	Made    time.Time
	LastDay int32
	Revoked *time.Time // nil: it is not
}

// AddShare makes a link that shows an app, or one site of it ("": all), up to a day ("": the usual
// time), and returns the part of it that must be kept secret, and the day.
func (a *Admin) AddShare(ctx context.Context, of, site, until string) (token string, lastDay int32, err error) {
	name, token := app.NewLink()
	hash := app.HashOf(token)
	err = a.withApp(ctx, of, func(q *db.Queries, row *db.App) error {
		to := db.ShareAddParams{AppID: row.ID, Name: name, Hash: hash[:]}
		if to.LastDay, err = a.shareUntil(row, until); err != nil {
			return err
		}
		lastDay = to.LastDay
		if site != "" {
			named, err := visit.ParseSite(site)
			if err != nil {
				return err
			}
			if !app.CountsSite(row, named) {
				return visit.Errorf(visit.Invalid, "site", "app %s does not count %s: name one of its sites", row.Name, visit.Shown(named))
			}
			to.Site = &named
		}
		return q.ShareAdd(ctx, to)
	})
	if err != nil {
		return "", 0, wrap("add a link to app "+of, err)
	}
	return token, lastDay, a.db.WaitForInstances(ctx, instancesWithin) // the link is made even with ErrInstancesBehind
}

func (a *Admin) shareUntil(row *db.App, until string) (lastDay int32, err error) {
	today, err := a.today(row)
	if err != nil {
		return 0, err
	}
	longest := visit.LastDays(1, today).Earlier(-mostShareDays).To
	if until == "" {
		return visit.LastDays(1, today).Earlier(-shareDays).To, nil
	}
	lastDay, err = visit.ParseDay(until, today)
	switch {
	case err != nil:
		return 0, visit.Errorf(visit.Invalid, "until", "%v", err)
	case lastDay < today:
		return 0, visit.Errorf(visit.Invalid, "until", "%s is over: write a day from %s on", visit.DayText(lastDay), visit.DayText(today))
	case lastDay > longest:
		return 0, visit.Errorf(visit.Invalid, "until", "%s is too far away: a link shows something for five years at most, up to %s", visit.DayText(lastDay), visit.DayText(longest))
	}
	return lastDay, nil
}

// today is the day that it is in the time zone of an app.
func (a *Admin) today(row *db.App) (int32, error) {
	zone, err := time.LoadLocation(row.Tz)
	if err != nil {
		return 0, err
	}
	return visit.DayOf(a.db.Now(), zone), nil
}

// Shares lists an app's links, revoked ones and those that are over included.
func (a *Admin) Shares(ctx context.Context, app string) (shares []Share, err error) {
	var rows []db.SharesListRow
	err = a.db.Read(ctx, func(q *db.Queries) error {
		row, err := appOf(ctx, q, app)
		if err == nil {
			rows, err = q.SharesList(ctx, row.ID)
		}
		return err
	})
	for _, s := range rows {
		one := Share{Name: s.Name, Made: s.CreatedAt, LastDay: s.LastDay, Revoked: s.RevokedAt}
		if s.Site != nil {
			one.Site = *s.Site
		}
		shares = append(shares, one)
	}
	return shares, wrap("list the links to app "+app, err)
}

// RevokeShare lets a link show nothing any more. It is named by its name, or by all of it.
func (a *Admin) RevokeShare(ctx context.Context, app, link string) error {
	_, token, is := strings.Cut(link, "/share/")
	if !is {
		token = link
	}
	name, _, _ := strings.Cut(token, "_")
	err := a.withApp(ctx, app, func(q *db.Queries, row *db.App) error {
		revoked, err := q.ShareRevoke(ctx, db.ShareRevokeParams{AppID: row.ID, Name: name})
		if err == nil && revoked == 0 {
			return visit.Errorf(visit.NotFound, "link", "app %s has no link %.64q that is not revoked: `footfall app share list` names them", app, name)
		}
		return err
	})
	if err != nil {
		return wrap("revoke a link to app "+app, err)
	}
	return a.db.WaitForInstances(ctx, instancesWithin)
}
