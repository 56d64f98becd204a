package imports

import (
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

// all is what the tables keep of logs, as text.
func (d *desk) all() string {
	d.t.Helper()
	return strings.Join(dbtest.Column[string](d.t, dbtest.Connect(d.t, d.url), `
		SELECT l::text FROM logs AS l UNION ALL SELECT s::text FROM log_samples AS s UNION ALL SELECT s::text FROM log_lines AS s`), "\n")
}

// What is kept of lines goes with their days, and of daily apps with the keys of these; a log stays.
func TestLinesGoWithTheirDays(t *testing.T) {
	t.Parallel()
	secret, daily, hashed := app.Secret("thirty-two bytes that are secret"), app.ByDay, app.ByHash
	for name, visitor := range map[string]*string{"hashed": &hashed, "daily": &daily} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			days := 2 // right after midnight yesterday counts as today still
			d := newDeskOf(t, secret, app.Settings{Visitor: visitor}, "blog")
			tables := d.openWith(secret)
			now := time.Now().UTC()
			lines := asked("192.0.2.1", "/", int(now.Sub(firstTime).Seconds())-1)
			if visitor == &hashed {
				lines = asked("192.0.2.9", "/", 0) + lines
			}
			d.imported(d.file("access.log", []byte(lines)))
			had := d.total()
			hours := func() []int32 {
				return dbtest.Column[int32](t, dbtest.Connect(t, d.url), `SELECT hour FROM log_samples ORDER BY hour`)
			}
			require.Len(t, hours(), had)
			if visitor == &hashed {
				require.NoError(t, admin.NewAdmin(tables, secret).SetApp(t.Context(), "blog", app.Settings{RetainDays: &days}))
			} else {
				// as if it were that day
				d.exec(`WITH gone AS (DELETE FROM day_keys RETURNING key) INSERT INTO day_keys (day_id, key)
					SELECT to_char(now() + interval '10 days', 'YYYYMMDD')::integer, key FROM gone LIMIT 1`)
			}
			_, err := retention.NewRetainer(tables, retention.Options{}).Run(t.Context())
			require.NoError(t, err)
			if visitor == &hashed {
				require.Equal(t, []int32{int32(now.Unix() / 3600)}, hours()) //nolint:gosec // some hundred thousand
			} else {
				require.Empty(t, hours())
			}
			d.follow(step{"it is known", []string{"access.log"}, nil, had, ""})
		})
	}
}

// Whoever has the tables without the key cannot try lines, and with them addresses, against them.
func TestHashesAreKeyed(t *testing.T) {
	t.Parallel()
	for _, visitor := range []string{app.ByAddress, app.ByHash, app.ByDay} {
		secret := app.Secret("thirty-two bytes that are secret")
		d := newDeskOf(t, secret, app.Settings{Visitor: &visitor}, "blog")
		line := asked("192.0.2.1", "/", int(time.Since(firstTime).Seconds())-1)
		d.imported(d.file("access.log", []byte(line+line)))
		require.Equal(t, 2, d.total())
		text := strings.TrimSuffix(line, "\n")
		for name, sum := range map[string][]byte{
			"XXH64":             binary.BigEndian.AppendUint64(nil, xxhash.Sum64String(text)),
			"XXH64 of the line": binary.BigEndian.AppendUint64(nil, xxhash.Sum64String(line)),
			"by another key":    binary.BigEndian.AppendUint64(nil, hashWith(make([]byte, 32), text)),
		} {
			assert.NotContains(t, d.all(), hex.EncodeToString(sum), visitor+": "+name)
			assert.NotContains(t, d.all(), fmt.Sprint(int64(binary.BigEndian.Uint64(sum))), visitor+": "+name) //nolint:gosec // the same bits
		}
		keys := dbtest.Column[[]byte](t, dbtest.Connect(t, d.url), `SELECT log_key FROM apps WHERE log_key IS NOT NULL`)
		if visitor == app.ByAddress { // which needs no secret
			assert.Len(t, keys, 1)
			assert.Contains(t, d.all(), hex.EncodeToString(binary.BigEndian.AppendUint64(nil, hashWith(keys[0], text))))
			d.openWith(nil)
			d.follow(step{"without a secret", []string{"access.log"}, nil, 2, ""})
		} else {
			assert.Empty(t, keys)
		}
	}
}

func hashWith(key []byte, line string) uint64 {
	hash, _ := newHashes(key, nil).ofLine(0, []byte(line))
	return hash
}
