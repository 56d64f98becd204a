package record

import (
	"net/netip"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/visit"
)

// openDemo makes a database with an app, and a visit to it.
func openDemo(t *testing.T) (*pgx.Conn, *db.DB, Visit) {
	t.Helper()
	url := dbtest.New(t)
	conn := dbtest.Connect(t, url)
	_, err := conn.Exec(t.Context(), `INSERT INTO apps (name) VALUES ('demo')`)
	require.NoError(t, err)
	d := dbtest.Open(t, url, db.Options{})
	apps, err := d.Apps(t.Context())
	require.NoError(t, err)
	return conn, d, Visit{App: apps[0].ID, CountsBy: apps[0].CountsBy(), Target: visit.Target{Site: "a.example", Page: "a.example/"},
		Visitor: netip.MustParseAddr("2001:db8::"), Day: 20260629}
}

// Nothing is counted any more for an app that is deleted or being deleted, whether its targets are
// still there or not.
func TestVisitToADeletedAppIsNotFound(t *testing.T) {
	t.Parallel()
	conn, d, now := openDemo(t)
	one := recorder(t, d, Options{})
	_, err := one.Record(now)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `UPDATE footfall.apps SET deleted_at = now()`)
	require.NoError(t, err)
	another := recorder(t, d, Options{})
	fresh, gone := now, now
	fresh.Target.Page = "a.example/new"
	gone.App++
	for _, v := range []Visit{now, fresh, gone} {
		var verr *visit.Error
		_, err = another.Record(v)
		require.ErrorAs(t, err, &verr)
		require.Equal(t, visit.NotFound, verr.Kind)
	}
}

// A visit that was admitted under settings that its app had before it counted anything is refused,
// also where its targets are in the cache by now: the app would call its visitor something else.
func TestVisitOfFormerSettingsIsRefused(t *testing.T) {
	t.Parallel()
	_, d, now := openDemo(t)
	former := now
	former.CountsBy.Ipv6Prefix = 48

	one := recorder(t, d, Options{})
	another := recorder(t, d, Options{})
	_, err := one.Record(now)
	require.NoError(t, err)
	for _, r := range []*Recorder{one, another} { // which have the targets in memory, or not
		var verr *visit.Error
		_, err = r.Record(former)
		require.ErrorAs(t, err, &verr)
		require.Equal(t, visit.Unavailable, verr.Kind)
		_, err = r.Record(now)
		require.NoError(t, err)
	}
}
