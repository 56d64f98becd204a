package generate

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/bench"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/intake/logs"
	"footfall/retention"
	"footfall/verify"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// smallSet returns a set that is small enough for a test, and large enough for visitors to return to pages, also on
// one day.
func smallSet() Set {
	return Set{
		App: "small", Visits: 6000, Days: 20, Until: time.Date(2026, 6, 29, 13, 0, 0, 0, time.UTC),
		Pages: 400, Visitors: 2000, Sites: 4,
	}
}

func generated(t *testing.T, address string, set Set) *pgx.Conn {
	t.Helper()
	err := Run(t.Context(), bench.Options{DatabaseURL: address}, set)
	require.NoError(t, err)
	return dbtest.Connect(t, address)
}

// Generated data keeps every promise of the tables. The test checks this with its own queries.
func TestGenerateKeepsThePromises(t *testing.T) {
	t.Parallel()
	conn := generated(t, dbtest.New(t), smallSet())
	for name, query := range map[string]string{
		"ranks are 1..uv": `SELECT format('%s: %s', c.page_id, c.uv) FROM counters c LEFT JOIN (
				SELECT page_id, count(*) n, max(rank) last FROM visitors GROUP BY page_id) v USING (page_id)
			WHERE (c.uv, c.uv) IS DISTINCT FROM (v.n, v.last)`,
		"pv is the rows of visits": `SELECT c.page_id::text FROM counters c WHERE pv <> (SELECT count(*) FROM visits v
			WHERE v.page_id = c.page_id)`,
		"a site's hot is its pages'": `SELECT s.uri FROM pages s JOIN counters c ON c.page_id = s.id WHERE s.site_id IS NULL
			AND hot <> (SELECT sum(d.hot) FROM pages p JOIN counters d ON d.page_id = p.id WHERE p.site_id = s.id)`,
		"a site's visitors are its pages'": `SELECT s.id::text FROM pages s WHERE s.site_id IS NULL
			AND (SELECT array_agg(DISTINCT (day_id, ip) ORDER BY (day_id, ip)) FROM visits WHERE page_id = s.id) IS DISTINCT FROM
			    (SELECT array_agg(DISTINCT (day_id, ip) ORDER BY (day_id, ip)) FROM visits v JOIN pages p ON p.id = v.page_id
			    WHERE p.site_id = s.id)`,
		"days sum up": `SELECT page_id::text FROM counters c LEFT JOIN (
				SELECT page_id, sum(hot) hot, sum(pv) pv, sum(new_visitors) new_visitors FROM days GROUP BY page_id) d USING (page_id)
			WHERE (c.hot, c.pv, c.uv) IS DISTINCT FROM (d.hot, d.pv, d.new_visitors)`,
		"days are the rows": `SELECT format('%s on %s', page_id, day_id) FROM days FULL JOIN (
				SELECT v.page_id, v.day_id, count(*) n, count(*) FILTER (WHERE w.first_day = v.day_id) new
				FROM visits v JOIN visitors w USING (page_id, ip) GROUP BY v.page_id, v.day_id) v USING (page_id, day_id)
			WHERE (pv, new_visitors) IS DISTINCT FROM (n, new)`,
		"days know their sites": `SELECT d.page_id::text FROM days d JOIN pages p ON p.id = d.page_id WHERE d.site_id IS DISTINCT FROM p.site_id`,
		"a site's day is its pages'": `SELECT s.page_id::text FROM days s WHERE site_id IS NULL
			AND hot <> (SELECT sum(hot) FROM days p WHERE p.site_id = s.page_id AND p.day_id = s.day_id)`,
		"returns": `SELECT format('%s %s %s', page_id, day_id, previous_day) FROM returns FULL JOIN (
				SELECT page_id, day_id, previous_day, count(*) n FROM (
					SELECT page_id, day_id, lag(day_id) OVER (PARTITION BY page_id, ip ORDER BY day_id) previous_day FROM visits) v
				WHERE previous_day IS NOT NULL GROUP BY 1, 2, 3) v USING (page_id, day_id, previous_day)
			WHERE visitors IS DISTINCT FROM n`,
		"previous days": `SELECT format('%s %s %s', page_id, ip, day_id) FROM (
				SELECT *, lag(day_id, 1, 0) OVER (PARTITION BY page_id, ip ORDER BY day_id) before FROM visits) v
			WHERE previous_day <> before`,
		"visitors' days are their visits'": `SELECT page_id::text FROM visitors FULL JOIN (
				SELECT page_id, ip, min(day_id) a, max(day_id) b FROM visits GROUP BY page_id, ip) v USING (page_id, ip)
			WHERE (first_day, last_day) IS DISTINCT FROM (a, b)`,
		"visitors of sites bring tags": `SELECT p.uri FROM pages p JOIN counters c ON c.page_id = p.id WHERE p.site_id IS NULL
			AND ARRAY(SELECT sum(d.pv)::bigint FROM tag_days d JOIN tags t ON t.id = d.tag_id
				WHERE d.page_id = p.id AND t.name IN ('hour', 'browser', 'language', 'country') GROUP BY t.name) IS DISTINCT
				FROM ARRAY[c.pv, c.pv, c.pv, c.pv]`,
		"ranks follow the days": `SELECT page_id::text FROM (
				SELECT page_id, first_day, lag(first_day) OVER (PARTITION BY page_id ORDER BY rank) before FROM visitors) v
			WHERE first_day < before`,
	} {
		assert.Empty(t, dbtest.Column[string](t, conn, query), name)
	}
	var sums struct{ Hot, Pages, Visitors, Days, Again, Old, Six int }
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT
		(SELECT sum(hot) FROM counters c JOIN pages p ON p.id = c.page_id WHERE p.site_id IS NULL),
		(SELECT count(*) FROM pages JOIN counters ON page_id = id WHERE site_id IS NOT NULL AND hot > 0),
		(SELECT count(DISTINCT ip) FROM visitors), (SELECT count(DISTINCT day_id) FROM days),
		(SELECT count(*) FROM days WHERE hot > pv), (SELECT min(day_id) FROM days), (SELECT count(*) FROM visitors WHERE family(ip) = 6)`).
		Scan(&sums.Hot, &sums.Pages, &sums.Visitors, &sums.Days, &sums.Again, &sums.Old, &sums.Six))
	assert.Equal(t, 6000, sums.Hot)
	assert.Equal(t, 400, sums.Pages)
	assert.Equal(t, 2000, sums.Visitors)
	assert.Equal(t, 20, sums.Days)
	assert.Equal(t, 20260610, sums.Old)
	assert.Positive(t, sums.Again)
	assert.Positive(t, sums.Six)
}

// Every promise holds in the end, even if a service has already closed some of the days, and closes other days in
// the meantime.
func TestGenerateOnClosedDays(t *testing.T) {
	t.Parallel()
	address := dbtest.New(t)
	d := dbtest.Open(t, address, db.Options{})
	for _, day := range []int32{20260628, 20260629} {
		_, err := d.MakeDays(t.Context(), day)
		require.NoError(t, err)
	}
	daily := retention.NewRetainer(d, retention.Options{})
	done, err := daily.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int32{20260628, 20260629}, done.Closed)
	require.NoError(t, Run(t.Context(), bench.Options{DatabaseURL: address, Progress: func(step string) {
		if step == "counting day 11 of 20" {
			_, err := daily.Run(t.Context())
			assert.NoError(t, err)
		}
	}}, smallSet()))
	_, err = daily.Run(t.Context())
	require.NoError(t, err)
	proof, err := verify.Run(t.Context(), d, verify.Options{Sample: 100, Jobs: 1})
	require.NoError(t, err)
	assert.Zero(t, proof.Violations, proof.Promises)
	assert.Len(t, dbtest.Column[int32](t, dbtest.Connect(t, address), `SELECT day_id FROM closed_days WHERE day_id <= 20260629`), 20)
}

// The same seed generates the same visits, and another seed generates other visits. An app name can be used only
// once. Sets are limited only by sizes.
func TestGenerateRepeats(t *testing.T) {
	t.Parallel()
	const all = `SELECT format('%s %s %s %s', uri, ip, rank, last_day) FROM visitors JOIN pages ON id = page_id ORDER BY uri, rank`
	set, address := smallSet(), dbtest.New(t)
	one := dbtest.Column[string](t, generated(t, address, set), all)
	err := Run(t.Context(), bench.Options{DatabaseURL: address}, set)
	require.ErrorContains(t, err, "small")
	assert.NotContains(t, err.Error(), "incomplete")

	assert.Equal(t, one, dbtest.Column[string](t, generated(t, dbtest.New(t), set), all))
	set.Seed = 2
	assert.NotEqual(t, one, dbtest.Column[string](t, generated(t, dbtest.New(t), set), all))
}

// An interrupted run reports that the app is incomplete.
func TestGenerateInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	err := Run(ctx, bench.Options{DatabaseURL: dbtest.New(t), Progress: func(string) { cancel() }}, smallSet())
	require.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "app: small is incomplete: delete it with `footfall app delete small`")
}

func TestCheck(t *testing.T) {
	t.Parallel()
	assert.Empty(t, Set{}.Check())
	for want, change := range map[string]func(s *Set){
		"pages: 3 are too few for 4 sites": func(s *Set) { s.Pages = 3 },
		"visits: 399 are too few":          func(s *Set) { s.Visits, s.Visitors = 399, 10 },
		"visits: 400 are too few":          func(s *Set) { s.Visits, s.Visitors = 400, 401 },
	} {
		set := smallSet()
		change(&set)
		faults := set.Check()
		require.Len(t, faults, 1)
		assert.ErrorContains(t, faults[0], want)
	}
}

// A log has a line for each visit, in order, and three other lines for every two visits.
func TestWriteLog(t *testing.T) {
	t.Parallel()
	set := Set{Visits: 1000, Visitors: 100, Pages: 50, Sites: 3, Days: 4}
	var text bytes.Buffer
	require.NoError(t, WriteLog(&text, set))
	var again bytes.Buffer
	require.NoError(t, WriteLog(&again, set))
	require.True(t, bytes.Equal(text.Bytes(), again.Bytes()))
	p, visits, lines, last := logs.NewParser(logs.CombinedHost), 0, 0, time.Time{}
	for line := range bytes.Lines(text.Bytes()) {
		var l logs.Line
		require.NoError(t, p.Parse(bytes.TrimSuffix(line, []byte("\n")), &l))
		require.False(t, l.Time.Before(last))
		last = l.Time
		lines++
		if l.Status == 200 && !bytes.HasSuffix(l.Target, []byte(".css")) && !strings.Contains(string(l.Agent), "bot") {
			visits++
		}
	}
	require.Equal(t, 1000, visits)
	require.Equal(t, 2500, lines)
}
