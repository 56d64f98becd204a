package imports

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/db/dbtest"
	"footfall/retention"
)

// all returns the rows of counted lines as text.
func (d *desk) all() string {
	d.t.Helper()
	return strings.Join(dbtest.Column[string](d.t, dbtest.Connect(d.t, d.url), `SELECT l::text FROM counted_lines AS l`), "\n")
}

// hot returns the number of visits of the app.
func (d *desk) hot() int {
	d.t.Helper()
	conn := dbtest.Connect(d.t, d.url)
	defer conn.Close(context.Background()) // some tests call this many times
	return int(dbtest.Column[int64](d.t, conn, `SELECT coalesce(sum(c.hot), 0)::bigint FROM counters AS c
		JOIN pages AS p ON p.id = c.page_id JOIN apps AS a ON a.id = p.app_id WHERE p.site_id IS NULL AND a.name = $1`, d.app)[0])
}

// Retention deletes lines with their days, and lines of daily apps with the keys of these days.
func TestLinesGoWithTheirDays(t *testing.T) {
	t.Parallel()
	secret, daily, hashed := app.Secret("thirty-two bytes that are secret"), app.ByDay, app.ByHash
	for name, visitor := range map[string]*string{"hashed": &hashed, "daily": &daily} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			days := 2 // right after midnight, yesterday still counts as today
			d := newDeskOf(t, secret, app.Settings{Visitor: visitor}, "blog")
			tables := d.openWith(secret)
			now := time.Now().UTC()
			lines := asked("192.0.2.1", "/", int(now.Sub(firstTime).Seconds())-1)
			if visitor == &hashed {
				lines = asked("192.0.2.9", "/", 0) + lines
			}
			d.imported(d.file("access.log", []byte(lines)))
			hours := func(table string) []int32 {
				return dbtest.Column[int32](t, dbtest.Connect(t, d.url), `SELECT hour FROM `+table+` ORDER BY hour`)
			}
			had := hours("log_hours")
			require.Len(t, had, d.hot())
			if visitor == &hashed {
				require.NoError(t, admin.NewAdmin(tables, secret).SetApp(t.Context(), "blog", app.Settings{RetainDays: &days}))
				had = had[1:]
			} else {
				// as if it were ten days later
				d.exec(`WITH gone AS (DELETE FROM footfall.day_keys RETURNING key) INSERT INTO footfall.day_keys (day_id, key)
					SELECT to_char(now() + interval '10 days', 'YYYYMMDD')::integer, key FROM gone LIMIT 1`)
				had = []int32{}
			}
			_, err := retention.NewRetainer(tables, retention.Options{}).Run(t.Context())
			require.NoError(t, err)
			require.Equal(t, had, hours("log_hours"))
			require.Equal(t, had, hours("counted_lines"))
		})
	}
}

// Without the key, nobody can find addresses by comparing the hashes of possible lines with the tables.
func TestHashesAreKeyed(t *testing.T) {
	t.Parallel()
	for _, visitor := range []string{app.ByAddress, app.ByHash, app.ByDay} {
		secret := app.Secret("thirty-two bytes that are secret")
		d := newDeskOf(t, secret, app.Settings{Visitor: &visitor}, "blog")
		line := asked("192.0.2.1", "/", int(time.Since(firstTime).Seconds())-1)
		d.imported(d.file("access.log", []byte(line+line)))
		require.Equal(t, 2, d.hot())
		text := strings.TrimSuffix(line, "\n")
		for name, sum := range map[string][]byte{
			"XXH64":             binary.BigEndian.AppendUint64(nil, xxhash.Sum64String(text)),
			"XXH64 of the line": binary.BigEndian.AppendUint64(nil, xxhash.Sum64String(line)),
			"with another key":  binary.BigEndian.AppendUint64(nil, hashWith(make([]byte, 32), text)),
		} {
			assert.NotContains(t, d.all(), hex.EncodeToString(sum), visitor+": "+name)
			assert.NotContains(t, d.all(), fmt.Sprint(int64(binary.BigEndian.Uint64(sum))), visitor+": "+name) //nolint:gosec // the same bits
		}
		keys := dbtest.Column[[]byte](t, dbtest.Connect(t, d.url), `SELECT log_key FROM apps WHERE log_key IS NOT NULL`)
		if visitor == app.ByAddress { // needs no secret
			assert.Len(t, keys, 1)
			assert.Contains(t, d.all(), hex.EncodeToString(binary.BigEndian.AppendUint64(nil, hashWith(keys[0], text))))
			d.openWith(nil)
			require.Zero(t, d.imported(d.file("access.log", []byte(line+line))).Counted, "without a secret")
		} else {
			assert.Empty(t, keys)
		}
	}
}

func hashWith(key []byte, line string) uint64 {
	hash, _ := newHashes(key, nil).hashLine(0, []byte(line), "blog.example")
	return hash
}
