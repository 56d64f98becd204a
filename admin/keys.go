package admin

import (
	"context"
	"slices"
	"strings"
	"time"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// Key is what is known of a key of an app. The key itself is known to its holder alone.
type Key struct {
	Name    string
	Scopes  []string
	Made    time.Time
	Used    *time.Time // nil: never
	Revoked *time.Time // nil: it is valid
}

// AddKey makes a key of an app with some scopes and returns it. The key cannot be read again: only
// its hash is stored.
func (a *Admin) AddKey(ctx context.Context, of string, with []app.Scope) (key string, err error) {
	if len(with) == 0 {
		return "", visit.Errorf(visit.Invalid, "scope", "it is missing: name what the key allows: %s", scopeNames())
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
	err = a.withApp(ctx, of, func(q *db.Queries, row *db.App) error {
		return q.KeyAdd(ctx, db.KeyAddParams{AppID: row.ID, Name: name, Hash: hash[:], Scopes: names})
	})
	if err != nil {
		return "", wrap("add a key of app "+of, err)
	}
	return key, a.db.WaitForInstances(ctx, instancesWithin) // the key is valid even with ErrInstancesBehind
}

func scopeNames() string {
	var names []string
	for _, scope := range app.Scopes {
		names = append(names, string(scope))
	}
	return strings.Join(names, ", ")
}

// Keys lists an app's keys, revoked ones included.
func (a *Admin) Keys(ctx context.Context, app string) (keys []Key, err error) {
	var rows []db.KeysListRow
	err = a.db.Read(ctx, func(q *db.Queries) error {
		row, err := appOf(ctx, q, app)
		if err == nil {
			rows, err = q.KeysList(ctx, row.ID)
		}
		return err
	})
	for _, k := range rows {
		keys = append(keys, Key{Name: k.Name, Scopes: k.Scopes, Made: k.CreatedAt, Used: k.UsedAt, Revoked: k.RevokedAt})
	}
	return keys, wrap("list the keys of app "+app, err)
}

// RevokeKey makes a key invalid. It is named by its name, or by all of it.
func (a *Admin) RevokeKey(ctx context.Context, of, name string) error {
	err := a.withApp(ctx, of, func(q *db.Queries, row *db.App) error {
		revoked, err := q.KeyRevoke(ctx, db.KeyRevokeParams{AppID: row.ID, Name: app.KeyName(name)})
		if err == nil && revoked == 0 {
			return visit.Errorf(visit.NotFound, "key", "app %s has no key %.64q that is not revoked: `footfall app key list` names them", of, app.KeyName(name))
		}
		return err
	})
	if err != nil {
		return wrap("revoke a key of app "+of, err)
	}
	return a.db.WaitForInstances(ctx, instancesWithin)
}
