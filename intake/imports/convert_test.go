package imports

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter/app"
	"footfall/db/dbtest"
)

// hadIn010 writes of a log what 0.1.0 has: all of its lines are claimed, and so many bytes counted.
func (d *desk) hadIn010(content []byte, counted int, hour int32) {
	d.t.Helper()
	conn := dbtest.Connect(d.t, d.url)
	hashed, lines := []byte{}, 0
	for line := range bytes.Lines(content) {
		hashed = binary.BigEndian.AppendUint64(hashed, xxhash.Sum64(bytes.TrimSuffix(line, []byte("\n"))))
		lines++
	}
	sum := sha256.Sum256(content)
	_, err := conn.Exec(d.t.Context(), `ALTER TABLE logs DROP CONSTRAINT logs_know_what_is_counted`)
	require.NoError(d.t, err)
	var id int64
	require.NoError(d.t, conn.QueryRow(d.t.Context(), `INSERT INTO logs (app_id, claimed, lines, hash, file, rules)
		SELECT id, $1, $2, $3, 'access.log', '--site blog.example' FROM apps WHERE name = 'blog' RETURNING id`,
		len(content), lines, sum[:]).Scan(&id))
	for from := 0; from < len(hashed); from += 8 * 200 {
		_, err = conn.Exec(d.t.Context(), `INSERT INTO log_lines (app_id, log_id, line, hour, hashes) SELECT app_id, id, $2, $3, $4 FROM logs
			WHERE id = $1`,
			id, from/8, hour, hashed[from:min(from+8*200, len(hashed))])
		require.NoError(d.t, err)
	}
	_, err = conn.Exec(d.t.Context(), `INSERT INTO positions (app_id, source, part, next) SELECT app_id, 'logs', id::text, $2 FROM logs
		WHERE id = $1`, id, counted)
	require.NoError(d.t, err)
	_, err = conn.Exec(d.t.Context(), `ALTER TABLE logs ADD CONSTRAINT logs_know_what_is_counted CHECK (counted IS NOT NULL) NOT VALID`)
	require.NoError(d.t, err)
}

// A log that 0.1.0 has imported is that log, one that it has imported in part goes on behind that,
// and nothing is left by which an address could be tried without the key.
func TestLogsOf010(t *testing.T) {
	t.Parallel()
	lines := written(1, 0, 1800)
	all, half := text(lines), text(lines[:len(lines)/2])
	hour := int32(firstTime.Unix() / 3600) //nolint:gosec // some hundred thousand
	for name, counted := range map[string]int{"whole": len(all), "half": len(half), "begun": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.hadIn010(all, counted, hour)
			d.file("other", text(written(2, 0, 3600)))
			d.file("access.log", text(lines, written(1, 1800, 3000)))
			d.file("part", text(lines[10:]))
			rest := 0
			if counted < len(all) {
				rest = len(lines) - bytes.Count(all[:counted], []byte("\n"))
			}
			whole := rest + len(written(1, 1800, 3000))
			d.follow(
				step{"it is not this one", []string{"other"}, nil, len(written(2, 0, 3600)), ""},
				step{"it goes on", []string{"access.log"}, nil, whole + len(written(2, 0, 3600)), ""},
				step{"its lines are known", []string{"part"}, nil, whole + len(written(2, 0, 3600)), "are in " + d.folder + "/access.log, too"},
			)
			conn := dbtest.Connect(t, d.url)
			assert.Zero(t, dbtest.Column[int64](t, conn, `SELECT (SELECT count(*) FROM log_lines) + (SELECT count(*) FROM positions
				WHERE source = 'logs') + (SELECT count(*) FROM logs WHERE counted IS NULL)`)[0])
			sum := sha256.Sum256(all)
			assert.Zero(t, dbtest.Column[int64](t, conn, fmt.Sprintf(`SELECT count(*) FROM logs WHERE '\x%x' IN (hash, counted_hash)`, sum))[0])
		})
	}
}

// The nightly task hashes what 0.1.0 has left, where it has the secret, and loses nothing where it has
// not.
func TestOldLogsAreHashedByWhoHasTheKey(t *testing.T) {
	t.Parallel()
	secret, hashed := app.Secret("thirty-two bytes that are secret"), app.ByHash
	d := newDeskOf(t, secret, app.Settings{Visitor: &hashed}, "blog")
	all := text(written(1, 0, 1800))
	d.hadIn010(all, len(all), int32(firstTime.Unix()/3600)) //nolint:gosec // some hundred thousand
	old := func() int64 {
		return dbtest.Column[int64](t, dbtest.Connect(t, d.url),
			`SELECT count(*) FROM logs JOIN log_lines ON log_id = id WHERE counted IS NULL`)[0]
	}
	had := old()
	require.Positive(t, had)
	for _, with := range []app.Secret{nil, secret} {
		tables := d.openWith(with)
		require.NoError(t, HashOldLogs(t.Context(), tables, d.counter))
		if with == nil {
			require.Equal(t, had, old())
		}
	}
	require.Zero(t, old())
	d.file("access.log", all)
	d.follow(step{"it is known", []string{"access.log"}, nil, 0, ""})

	// Without the secret nobody can tell whether a line is in the tables, or a log.
	keys := dbtest.Column[[]byte](t, dbtest.Connect(t, d.url), `SELECT log_key FROM apps WHERE log_key IS NOT NULL`)
	require.Empty(t, keys)
}
