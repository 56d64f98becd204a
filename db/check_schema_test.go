package db_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

func TestCheckSchema(t *testing.T) {
	t.Parallel()
	whole := dbtest.New(t)
	for name, c := range map[string]struct {
		role  string // that checks; "": the owner; "member of …": a new login
		reads bool   // it only reads
		spoil func(t *testing.T, conn *pgx.Conn)
		want  string // in the error; "": none
	}{
		"up to date":                 {},
		"up to date, as the service": {role: "footfall_app"},
		"a version behind": {
			role: "footfall_app",
			spoil: func(t *testing.T, conn *pgx.Conn) {
				exec(t, conn, `DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`)
			},
			want: "type `footfall migrate up` as the owner of the tables",
		},
		"a newer one": {
			role: "footfall_app",
			spoil: func(t *testing.T, conn *pgx.Conn) {
				exec(t, conn, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`)
			},
			want: "the schema is at version 9999",
		},
		"up to date, as those who read": {role: "member of footfall_report", reads: true},
		"a role without rights": {role: "member of pg_monitor",
			want: "make it a member of footfall_app, as an administrator does with GRANT footfall_app TO "},
		"a role without rights that would read": {
			role: "member of pg_monitor", reads: true,
			want: "make it a member of footfall_report, as an administrator does with GRANT footfall_report TO ",
		},
		"a role that sees the tables and may not read them": {
			role: "footfall_report", reads: true,
			spoil: func(t *testing.T, conn *pgx.Conn) {
				exec(t, conn, `REVOKE SELECT ON footfall.goose_db_version FROM footfall_report`)
			},
			want: "the role footfall_report may not read the schema's version: type `footfall migrate up` as the owner of the tables, which " +
				"gives footfall_report its rights",
		},
		"while somebody migrates": {
			spoil: func(t *testing.T, conn *pgx.Conn) {
				require.NoError(t, db.New(conn).MigrateLock(t.Context()))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := whole
			if c.spoil != nil {
				url = dbtest.New(t)
			}
			conn := dbtest.Connect(t, url)
			if c.spoil != nil {
				c.spoil(t, conn)
			}
			if of, member := strings.CutPrefix(c.role, "member of "); member {
				url = withLogin(t, url, newLogin(t, conn, of))
			} else if c.role != "" {
				needRole(t, conn, c.role)
				url = withRole(t, url, c.role)
			}
			check := (*db.DB).CheckSchema
			if c.reads {
				check = (*db.DB).CheckReports
			}
			err := check(dbtest.Open(t, url, db.Options{}), t.Context())
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestCheckSchemaMakesNothing(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	conn := dbtest.Connect(t, url)
	d := dbtest.Open(t, url, db.Options{})
	for _, have := range []string{"", "footfall"} {
		if have != "" {
			exec(t, conn, `CREATE SCHEMA footfall`) // an administrator may have prepared it
		}
		require.ErrorContains(t, d.CheckSchema(t.Context()), "the database has no schema of Footfall's: type `footfall migrate up`")
		assert.Empty(t, dbtest.Column[string](t, conn, `SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('footfall')`))
	}
}
