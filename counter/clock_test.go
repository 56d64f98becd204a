package counter_test

import (
	"bytes"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/counter/desk"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/visit"
)

// localClock is the clock of a machine, which may be ahead of the database's.
type localClock struct{ ahead atomic.Int64 }

func (c *localClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

const tenYears = 10 * 365 * 24 * time.Hour

// startWithLocalClock starts an instance that knows the time only by measuring, as the service
// does.
func startWithLocalClock(t *testing.T, url string, ahead time.Duration, log *bytes.Buffer) (*instance, *localClock) {
	t.Helper()
	local := &localClock{}
	local.ahead.Store(int64(ahead))
	o := desk.Options{Real: true, Upkeep: true, DB: db.Options{LocalClock: local.Now}}
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	in := &instance{desk.On(t, url, o)}
	return in, local
}

// daysAstray are days to which an instance with a wrong clock would hold targets, visitors or apps:
// all but today, and yesterday, since midnight may fall into the test.
const daysAstray = `
	SELECT what, day
	FROM (
		SELECT 'day', day_id FROM days UNION SELECT 'visit', day_id FROM visits UNION SELECT 'visitor', last_day FROM visitors
		UNION SELECT 'tally', day_id FROM page_tallies
	) AS d (what, day)
	WHERE day_date(day) NOT BETWEEN (now() AT TIME ZONE 'UTC')::date - 1 AND (now() AT TIME ZONE 'UTC')::date`

// An instance whose clock is ten years ahead counts by the database's like any other, and says so.
func TestClockTenYearsAhead(t *testing.T) {
	t.Parallel()
	var silent, log bytes.Buffer
	url := dbtest.New(t)
	right, _ := startWithLocalClock(t, url, 0, &silent)
	visited := func(in *instance, ip, app, uri, want string) {
		t.Helper()
		a, err := in.Visit(t.Context(), counter.Request{App: app, IP: ip, URI: uri})
		require.NoError(t, err)
		require.Equal(t, want, row(a))
	}
	require.NoError(t, right.Admin.AddApp(t.Context(), "demo", app.Settings{Access: ptr("open")}))
	require.NoError(t, right.Admin.AddApp(t.Context(), "daily", app.Settings{Access: ptr("open"), Visitor: ptr("daily")}))
	visited(right, "192.0.2.1", "daily", "http://a/", "1 1 1 1 | 1 1 1 1")
	keys := right.Table(t, `SELECT day_id, key FROM day_keys`)

	ahead, _ := startWithLocalClock(t, url, tenYears, &log)
	visited(ahead, "192.0.2.1", "daily", "http://a/", "1 1 1 2 | 1 1 1 2")
	visited(ahead, "192.0.2.1", "demo", "http://a/", "1 1 1 1 | 1 1 1 1")
	visited(right, "192.0.2.2", "demo", "http://a/new", "2 2 2 2 | 1 1 1 1")
	require.NoError(t, ahead.Ready(t.Context()))

	require.Empty(t, right.Table(t, daysAstray))
	require.Subset(t, right.Table(t, `SELECT day_id, key FROM day_keys`), keys)
	require.InDelta(t, tenYears.Seconds(), ahead.Metric(t, "footfall_clock_offset_seconds"), 1)
	require.InDelta(t, 0, right.Metric(t, "footfall_clock_offset_seconds"), 1)
	ahead.Close()
	right.Close()
	require.Contains(t, log.String(), "clock differs")
	require.NotContains(t, silent.String(), "clock differs")
	right.Check(t)
}

// A clock that is set ten years ahead between two measurements costs the visits of one batch, which
// can be sent again.
func TestClockIsSetWhileCounting(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	in, local := startWithLocalClock(t, dbtest.New(t), 0, &log)
	require.NoError(t, in.Admin.AddApp(t.Context(), "demo", app.Settings{Access: ptr("open")}))
	require.Equal(t, "1 1 1 1 | 1 1 1 1", row(in.Count(t, "192.0.2.1", "http://a/")))
	for _, page := range []string{"http://a/", "http://a/new", "http://new/"} {
		local.ahead.Add(int64(tenYears))
		_, err := in.Visit(t.Context(), counter.Request{App: "demo", IP: "192.0.2.2", URI: page})
		var verr *visit.Error
		require.ErrorAs(t, err, &verr)
		require.Equal(t, visit.Unavailable, verr.Kind)
	}
	require.Equal(t, "2 2 2 2 | 1 1 1 1", row(in.Count(t, "192.0.2.2", "http://a/new")))
	local.ahead.Store(0) // it is set right, long before it is measured again
	require.Greater(t, in.Metric(t, "footfall_clock_offset_seconds"), tenYears.Seconds(), "as it was measured last")
	require.NoError(t, in.Ready(t.Context()))
	require.Empty(t, in.Table(t, daysAstray))
	in.Check(t)
}
