package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// AddKey adds an API key for the app called of. The scopes in with are the rights of the key. If of is "", the key can change
// all apps. AddKey returns the key, even if the error is ErrInstancesBehind. The key cannot be read again, because only its
// hash is stored.
func (a *Admin) AddKey(ctx context.Context, of string, with []app.Scope) (key string, err error) {
	if len(with) == 0 {
		return "", visit.Errorf(visit.Invalid, "scope", "it is missing: name the key's permissions: %s", scopeNames())
	}
	var names []string
	for _, scope := range with {
		if !slices.Contains(app.Scopes, scope) {
			return "", visit.Errorf(visit.Invalid, "scope", "%.64q is not a scope: write %s", scope, scopeNames())
		}
		if !slices.Contains(names, string(scope)) {
			names = append(names, string(scope))
		}
	}
	name, key := app.NewKey()
	hash := app.HashOf(key)
	if of == "" {
		return key, wrap("add a key for all apps", a.inTx(ctx, func(q queries) error {
			if !slices.Equal(names, []string{string(app.ScopeAdmin)}) {
				return visit.Errorf(visit.Invalid, "scope", "a key for all apps can only have one scope: write %s", app.ScopeAdmin)
			}
			if err := q.AdminKeyAdd(ctx, name, hash[:]); err != nil {
				return err
			}
			return q.note(ctx, "", "key", "", name+"_… (admin, all apps)")
		}))
	}
	return key, a.change(ctx, "add a key of app ", of, func(q queries, row *db.App) error {
		if err := q.KeyAdd(ctx, KeyAddParams{AppID: row.ID, Name: name, Hash: hash[:], Scopes: names}); err != nil {
			return err
		}
		return q.note(ctx, of, "key", "", name+"_… ("+strings.Join(names, ", ")+")")
	})
}

func scopeNames() string {
	var names []string
	for _, scope := range app.Scopes {
		names = append(names, string(scope))
	}
	return strings.Join(names, ", ")
}

// KeyOfAll returns the name of a key for all apps, or "" if this key does not exist or is revoked.
func (a *Admin) KeyOfAll(ctx context.Context, key string) (name string, err error) {
	hash := app.HashOf(key)
	err = a.db.Read(ctx, func(q *db.Queries) (err error) { name, err = New(q.Tx()).AdminKeyUse(ctx, hash[:]); return err })
	if errors.Is(err, db.ErrNoRows) {
		return "", nil
	}
	return name, wrap("look up a key", err)
}

// Keys lists the keys of an app or, if app is "", the keys for all apps. The list includes revoked keys.
func (a *Admin) Keys(ctx context.Context, app string) (keys []KeysListRow, err error) {
	if app == "" {
		err = a.db.Read(ctx, func(q *db.Queries) error {
			rows, err := New(q.Tx()).AdminKeysList(ctx)
			keys = make([]KeysListRow, len(rows))
			for i, row := range rows {
				keys[i] = KeysListRow(row)
			}
			return err
		})
		return keys, wrap("list the keys for all apps", err)
	}
	return list(ctx, a, "keys", app, queries.KeysList)
}

// RevokeKey revokes a key of an app or, if of is "", a key for all apps. name is the key's name, or the whole key.
func (a *Admin) RevokeKey(ctx context.Context, of, name string) error {
	if of == "" {
		return wrap("revoke a key for all apps", a.inTx(ctx, func(q queries) error {
			revoked, err := q.AdminKeyRevoke(ctx, app.KeyName(name))
			if err := requireRow(revoked, err, "key", "there is no key %.64q for all apps, or it is revoked: `footfall key list` lists them",
				app.KeyName(name)); err != nil {
				return err
			}
			return q.note(ctx, "", "key", app.KeyName(name)+"_…", "revoked")
		}))
	}
	return a.change(ctx, "revoke a key of app ", of, func(q queries, row *db.App) error {
		revoked, err := q.KeyRevoke(ctx, row.ID, app.KeyName(name))
		if err := requireRow(revoked, err, "key", "app %s has no key %.64q, or it is revoked: `footfall app key list` lists its keys", of,
			app.KeyName(name)); err != nil {
			return err
		}
		return q.note(ctx, of, "key", app.KeyName(name)+"_…", "revoked")
	})
}

const (
	shareDays     = 90   // default lifetime of a link, in days
	mostShareDays = 1826 // five years; the table shares checks this limit, too
)

// AddShare adds a link that shows an app or, if site is not "", one site of it. until is the last day on which the link is
// valid. If until is "", the link is valid for shareDays. AddShare returns the link's secret part and its last day, even if
// the error is ErrInstancesBehind.
func (a *Admin) AddShare(ctx context.Context, of, site, until string) (token string, lastDay int32, err error) {
	name, token := app.NewLink()
	hash := app.HashOf(token)
	err = a.change(ctx, "add a link to app ", of, func(q queries, row *db.App) error {
		if lastDay, err = a.shareUntil(row, until); err != nil {
			return err
		}
		shown, err := siteOf(row, site)
		if err != nil {
			return err
		}
		if err := q.ShareAdd(ctx, ShareAddParams{AppID: row.ID, Name: name, Hash: hash[:], Site: shown, LastDay: lastDay}); err != nil {
			return err
		}
		return q.note(ctx, of, "link", "", fmt.Sprintf("%s_… (%s, until %s)", name, SitesOf(shown), visit.DayText(lastDay)))
	})
	return token, lastDay, err
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
		return 0, visit.InField("until", err)
	case lastDay < today:
		return 0, visit.Errorf(visit.Invalid, "until",
			"%s is in the past: write %s or a later day", visit.DayText(lastDay), visit.DayText(today))
	case lastDay > longest:
		return 0, visit.Errorf(visit.Invalid, "until", "%s is too far away: a link is valid for five years at most, up to %s",
			visit.DayText(lastDay), visit.DayText(longest))
	}
	return lastDay, nil
}

// today returns the current day in an app's time zone.
func (a *Admin) today(row *db.App) (int32, error) {
	zone, err := time.LoadLocation(row.Tz)
	if err != nil {
		return 0, err
	}
	return visit.DayOf(a.db.Now(), zone), nil
}

// siteOf parses a site, and returns an error unless the app counts it. It returns nil for "", which means all sites.
func siteOf(row *db.App, typed string) (*string, error) {
	if typed == "" {
		return nil, nil
	}
	site, err := visit.ParseSite(typed)
	if err == nil && !app.CountsSite(row, site) {
		err = visit.Errorf(visit.Invalid, "site", "app %s does not count %s: name one of its sites, or none", row.Name, visit.Shown(site))
	}
	return &site, err
}

// SitesOf returns the name of a site, or "all sites" for nil.
func SitesOf(site *string) string {
	if site == nil {
		return "all sites"
	}
	return visit.Shown(*site)
}

// Shares lists the links of an app, including revoked and expired links.
func (a *Admin) Shares(ctx context.Context, app string) ([]SharesListRow, error) {
	return list(ctx, a, "links", app, queries.SharesList)
}

// RevokeShare revokes a link. link is its name, its secret part, or its URL.
func (a *Admin) RevokeShare(ctx context.Context, app, link string) error {
	_, token, is := strings.Cut(link, "/share/")
	if !is {
		token = link
	}
	name, _, _ := strings.Cut(token, "_")
	return a.change(ctx, "revoke a link to app ", app, func(q queries, row *db.App) error {
		revoked, err := q.ShareRevoke(ctx, row.ID, name)
		if err := requireRow(revoked, err, "link", "app %s has no link %.64q, or it is revoked: `footfall app share list` lists its links", app,
			name); err != nil {
			return err
		}
		return q.note(ctx, app, "link", name+"_…", "revoked")
	})
}
