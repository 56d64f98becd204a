package db_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/migrations"
)

// A database that 0.2.0 made gets the comments of this version, as a new database does.
func TestComments(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	conn := dbtest.Connect(t, url)
	released(t, conn)
	require.NotEqual(t, written(t), comments(t, conn))
	_, err := dbtest.Open(t, url, db.Options{}).MigrateUp(t.Context())
	require.NoError(t, err)
	assert.Equal(t, written(t), comments(t, conn))
	assert.Equal(t, written(t), comments(t, dbtest.Connect(t, dbtest.New(t))))
}

// A table that is locked for a long time does not make other sessions wait for the comments. It gets its comments
// at the next start.
func TestCommentsOfALockedTable(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	var log dbtest.Log
	d := dbtest.Open(t, url, db.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	exec(t, conn, `COMMENT ON COLUMN counters.hot IS 'before'; COMMENT ON TABLE visitors IS 'before'; COMMENT ON TABLE visits IS NULL`)
	vacuum := begin(t, url, `LOCK TABLE visitors IN SHARE UPDATE EXCLUSIVE MODE`)
	start := func() error { _, err := d.MigrateUp(t.Context()); return err }
	done := async(t, start)
	exec(t, conn, `SET lock_timeout = '1s'`)
	for day := 20190701; len(done) == 0; day = 20190701 + (day-20190700)%20 {
		exec(t, conn, `UPDATE visitors SET last_day = last_day; UPDATE counters SET hot = hot`)
		exec(t, conn, `SELECT make_visits_day($1)`, day)
	}
	require.NoError(t, receive(t, done, "the start"))
	assert.Contains(t, log.String(), "comments")
	assert.Contains(t, log.String(), "table=visitors")
	all := written(t)
	all["visitors"] = "before"
	assert.Equal(t, all, comments(t, conn))
	require.NoError(t, vacuum.Rollback(t.Context()))
	require.NoError(t, start())
	assert.Equal(t, written(t), comments(t, conn))
}

func TestCommentsOfANewerVersionStay(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	exec(t, conn, `COMMENT ON TABLE visits IS 'newer'; UPDATE schema_files SET hash = '9999 of a newer one' WHERE name = 'functions'`)
	_, err := dbtest.Open(t, url, db.Options{}).MigrateUp(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "newer", comments(t, conn)["visits"])
}

// Each line of the file is a statement that setComments can read, a comment, or empty.
func TestCommentsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	rest := regexp.MustCompile(`(?m)^COMMENT ON (TABLE  \w+|COLUMN \w+\.\w+) +IS '([^'\n]|'')+';$`).ReplaceAllString(migrations.Comments, "")
	for line := range strings.Lines(rest) {
		assert.True(t, line == "\n" || strings.HasPrefix(line, "-- "), line)
	}
}

// released makes the tables of 0.2.0.
func released(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	exec(t, conn, `CREATE SCHEMA footfall`)
	steps := fstest.MapFS{}
	paths, err := fs.Glob(migrations.FS, "*.sql")
	require.NoError(t, err)
	for _, path := range paths {
		if path < "00026" {
			text, err := fs.ReadFile(migrations.FS, path)
			require.NoError(t, err)
			steps[path] = &fstest.MapFile{Data: text}
		}
	}
	pool := stdlib.OpenDB(*conn.Config())
	defer func() { _ = pool.Close() }()
	p, err := goose.NewProvider(goose.DialectPostgres, pool, steps)
	require.NoError(t, err)
	_, err = p.Up(t.Context())
	require.NoError(t, err)
	for path, file := range steps {
		sum := sha256.Sum256(file.Data)
		exec(t, conn, `INSERT INTO schema_files (name, hash) VALUES ($1, $2)`, path, hex.EncodeToString(sum[:]))
	}
}

// written returns the comments of the file, by table or table.column.
func written(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, s := range regexp.MustCompile(`(?m)^COMMENT ON \w+ +(\S+) +IS '(.*)';$`).FindAllStringSubmatch(migrations.Comments, -1) {
		all[s[1]] = strings.ReplaceAll(s[2], "''", "'")
	}
	require.Greater(t, len(all), 300)
	return all
}

// comments returns the comments of all tables and columns, by table or table.column. It is "" for those without a
// comment.
func comments(t *testing.T, conn *pgx.Conn) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, line := range dbtest.Column[string](t, conn, `
		SELECT concat_ws('.', c.relname, a.attname) || E'\t' || coalesce(col_description(c.oid, coalesce(a.attnum, 0)), '')
		FROM pg_class AS c
		CROSS JOIN LATERAL (
			SELECT NULL::name AS attname, NULL::integer AS attnum
			UNION ALL
			SELECT attname, attnum FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
		) AS a
		WHERE c.relnamespace = 'footfall'::regnamespace
		  AND c.relkind IN ('r', 'p')
		  AND NOT c.relispartition`) {
		name, text, _ := strings.Cut(line, "\t")
		all[name] = text
	}
	return all
}
