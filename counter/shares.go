package counter

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"slices"
	"strings"
	"time"

	"footfall/db"
	"footfall/visit"
)

const (
	shareDays     = 90   // for which a link shows something, unless its maker says otherwise
	mostShareDays = 1826 // five years: the table knows
	wrongLinks    = -1   // stands for an app where wrong links are counted; none has this number
)

// share is a link that is not revoked.
type share struct {
	app     *app
	site    string // "": all of the app
	lastDay int32
}

// newShares holds those of apps that are there.
func newShares(rows []db.SharesOpenRow, apps map[string]*app) map[[sha256.Size]byte]share {
	byID := make(map[int32]*app, len(apps))
	for _, a := range apps {
		byID[a.id] = a
	}
	shares := make(map[[sha256.Size]byte]share, len(rows))
	for _, row := range rows {
		if a := byID[row.AppID]; a != nil {
			s := share{app: a, lastDay: row.LastDay}
			if row.Site != nil {
				s.site = *row.Site
			}
			shares[[sha256.Size]byte(row.Hash)] = s
		}
	}
	return shares
}

// Shared returns the permission to look at what a link shows: an app, or one site of it ("": all).
// A link that shows nothing is visit.NotFound, whatever the reason; from an address that sends many
// of them it is visit.TooMany.
func (c *Counter) Shared(ctx context.Context, token string, peer netip.Addr) (r *Reading, site string, err error) {
	register, err := c.apps.current(ctx)
	if err != nil {
		return nil, "", err
	}
	if s, found := register.shares[hashKey(token)]; found {
		if today := visit.DayOf(c.clock(), s.app.zone); today <= s.lastDay {
			return &Reading{App: s.app.name, Today: today, counter: c, app: s.app, peer: peer, stranger: true}, s.site, nil
		}
	}
	if wait := c.rates.take(sourceOf(wrongLinks, peer), mostTries); wait > 0 {
		c.metrics.limited.Inc()
		refused := visit.Errorf(visit.TooMany, "", "too many links that show nothing were followed from one address; try again in a minute")
		refused.RetryAfter = wait
		return nil, "", refused
	}
	return nil, "", ErrNoShare
}

// ErrNoShare says that a link shows nothing.
var ErrNoShare = visit.Errorf(visit.NotFound, "", "this link shows nothing: it is not written as it was sent, it was revoked, or its time is over")

// Sites are those that the app lists, *.host for the subdomains of a host.
func (r *Reading) Sites() (sites []string) {
	for site := range r.app.sites.exact {
		sites = append(sites, site)
	}
	for host := range r.app.sites.below {
		sites = append(sites, "*"+host)
	}
	slices.Sort(sites)
	return sites
}

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
func (a *Admin) AddShare(ctx context.Context, app, site, until string) (token string, lastDay int32, err error) {
	name, token := newToken("")
	hash := hashKey(token)
	err = a.withApp(ctx, app, func(q *db.Queries, row *db.App) error {
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
			if !countsSite(row, named) {
				return visit.Errorf(visit.Invalid, "site", "app %s does not count %s: name one of its sites", row.Name, visit.Shown(named))
			}
			to.Site = &named
		}
		return q.ShareAdd(ctx, to)
	})
	if err != nil {
		return "", 0, wrap("add a link to app "+app, err)
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

// countsSite reports whether an app counts a site, in canonical form.
func countsSite(row *db.App, site string) bool {
	listed := newSites(row.Sites)
	return row.Access == accessOpen && listed.empty() || listed.have(site)
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
