package db_test

import (
	"fmt"
	neturl "net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

// Roles belong to a whole server, and the one of the other tests has them: what happens where they
// are missing needs another.

// ownServer starts a server for one test. The connection is its superuser's.
func ownServer(t *testing.T) (url string, admin *pgx.Conn) {
	t.Helper()
	url = dbtest.Own(t, dbtest.OwnDir(t), "").URL()
	return url, dbtest.Connect(t, url)
}

// inDatabase is the URL of another database of the server.
func inDatabase(t *testing.T, url, name string) string {
	t.Helper()
	u, err := neturl.Parse(url)
	require.NoError(t, err)
	u.Path = "/" + name
	return u.String()
}

func TestOwnerWhoMayNotMakeRoles(t *testing.T) {
	t.Parallel()
	url, admin := ownServer(t)
	exec(t, admin, `CREATE ROLE keeper LOGIN PASSWORD 'secret'`)
	exec(t, admin, `CREATE DATABASE managed OWNER keeper TEMPLATE template0 ENCODING 'UTF8'`)
	url = inDatabase(t, url, "managed")
	keeper := dbtest.Open(t, withLogin(t, url, "keeper"), db.Options{})

	applied, err := keeper.MigrateUp(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, applied)
	missing, err := keeper.Queries().RolesGrant(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"footfall_app", "footfall_report"}, missing)
	require.NoError(t, keeper.CheckSchema(t.Context()))
	owner := dbtest.Connect(t, withLogin(t, url, "keeper"))
	exec(t, owner, `CREATE VIEW report.names AS SELECT name FROM footfall.apps`)

	exec(t, admin, `CREATE ROLE footfall_app`)
	service := dbtest.Open(t, withRole(t, url, "footfall_app"), db.Options{})
	require.ErrorContains(t, service.CheckSchema(t.Context()), "the role footfall_app may not read")
	missing, err = keeper.Queries().RolesGrant(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"footfall_report"}, missing)
	require.NoError(t, service.CheckSchema(t.Context()))

	exec(t, admin, `CREATE ROLE footfall_report`)
	again, err := keeper.MigrateUp(t.Context())
	require.NoError(t, err)
	assert.Empty(t, again)
	reader := dbtest.Connect(t, withRole(t, url, "footfall_report"))
	dbtest.Column[string](t, reader, `SELECT name FROM report.names`) // made before the role was

	exec(t, owner, `INSERT INTO apps (name) VALUES ('shop')`)
	exec(t, owner, `INSERT INTO keys (app_id, name, hash, scopes) VALUES (1, 'a', sha256('a'), '{count}')`)
	require.True(t, query[bool](t, owner, `SELECT make_visits_day($1)`, today))
	serveOn(t, service, owner)
	exec(t, owner, `DROP VIEW report.names`) // it would keep the schema from going
	steps := query[int](t, owner, `SELECT count(*) FROM goose_db_version WHERE version_id > 0`)
	require.Positive(t, steps)
	for range steps {
		_, err := keeper.MigrateDown(t.Context())
		require.NoError(t, err, "the owner takes back what they have made")
	}
}

// Tests, and hosts of many small sites, migrate many databases of one server at the same time.
func TestManyDatabasesMakeTheRolesAtOnce(t *testing.T) {
	t.Parallel()
	databases, rounds := dbtest.LongOrShort(8, 4), dbtest.LongOrShort(5, 2)
	url, admin := ownServer(t)
	var all sync.WaitGroup
	opened, conns := make([]*db.DB, databases), make([]*pgx.Conn, databases)
	for i := range opened {
		name := fmt.Sprintf("site_%d", i)
		exec(t, admin, `CREATE DATABASE `+name+` TEMPLATE template0 ENCODING 'UTF8'`)
		opened[i], conns[i] = dbtest.Open(t, inDatabase(t, url, name), db.Options{}), dbtest.Connect(t, inDatabase(t, url, name))
		all.Go(func() {
			_, err := opened[i].MigrateUp(t.Context())
			assert.NoError(t, err)
		})
	}
	all.Wait()
	for range rounds {
		for _, conn := range conns {
			exec(t, conn, `DROP OWNED BY footfall_app, footfall_report`)
		}
		exec(t, admin, `DROP ROLE footfall_app, footfall_report`)
		start := make(chan struct{})
		for _, d := range opened {
			for range 2 { // besides, somebody grants by hand
				all.Go(func() {
					<-start
					missing, err := d.Queries().RolesGrant(t.Context())
					assert.NoError(t, err)
					assert.Empty(t, missing)
				})
			}
		}
		close(start)
		all.Wait()
		for _, conn := range conns {
			assert.Contains(t, rightsOf(t, conn, "footfall_app"), "table visits: INSERT")
			assert.Contains(t, rightsOf(t, conn, "footfall_report"), "schema report: USAGE")
		}
	}
}
