package inbox

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/record"
)

// The rest of an app ends while a turn is counted of which its first visit was passed over: it is
// not tried again before the next time, and both its visits count then.
func TestRestEndsWithinATurn(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t)
	conn, d := dbtest.Connect(t, url), dbtest.Open(t, url, db.Options{})
	exec := func(sql string, args ...any) {
		_, err := conn.Exec(t.Context(), sql, args...)
		require.NoError(t, err)
	}
	const rests, counts = 1, 2
	exec(`INSERT INTO apps (name) VALUES ('rests'), ('counts')`)
	put := func(app, visits int) {
		exec(`
			SELECT put_in_inbox(a.id, a.tz, a.visitor, a.ipv6_prefix, ARRAY[a.name || '.example/'],
			                    array_agg(1), array_agg(to_char(now(), 'YYYYMMDD')::integer), array_agg(0), array_agg('10.0.0.0'::inet + v), NULL)
			FROM apps AS a
			CROSS JOIN generate_series(1, $2::integer) AS v
			WHERE a.id = $1
			GROUP BY a.id`, app, visits)
	}
	exec(`SET time zone 'UTC'`)
	put(rests, 1)
	put(counts, readVisits) // as many as are read at once
	put(rests, 1)
	exec(`SELECT turn_inbox()`)
	turn, err := db.New(conn).InboxTurnNext(t.Context(), db.InboxTurnNextParams{But: []int32{}})
	require.NoError(t, err)

	r, err := record.Open(t.Context(), d, record.Options{})
	require.NoError(t, err)
	t.Cleanup(r.Close)
	drain := newDrainer(d, r, nil, Options{Log: slog.New(slog.DiscardHandler)}, newMetrics(nil))
	until := time.Now().Add(time.Second)
	drain.held.resting[rests] = rest{until: until}
	count := func() <-chan error {
		ended := make(chan error, 1)
		go func() { _, err := drain.count(context.Background(), turn); ended <- err }()
		return ended
	}
	exec(`BEGIN; LOCK TABLE counters IN EXCLUSIVE MODE`)
	counted := count()
	dbtest.AwaitWaiting(t, dbtest.Connect(t, url), 1)
	require.Eventually(t, func() bool { return time.Now().After(until) }, dbtest.Patience, dbtest.Tick)
	exec(`COMMIT`)
	require.NoError(t, <-counted)
	require.NoError(t, <-count())
	require.Equal(t, []int64{2, readVisits}, dbtest.Column[int64](t, conn, `SELECT counted FROM inbox_apps ORDER BY app_id`))
	require.Equal(t, []int64{2, readVisits}, dbtest.Column[int64](t, conn, `SELECT hot FROM counters JOIN pages ON id = page_id WHERE site_id IS NULL ORDER BY app_id`))
}
