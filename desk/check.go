package desk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Check fails the test if totals or daily numbers in the tables do not agree with each other. Check does not use
// package verify, but SQL statements of its own, so that tests can compare the results of both.
func (d *Desk) Check(t testing.TB) {
	t.Helper()
	require.Empty(t, Broken(t, d))
}

// Broken returns a line of text for each total or daily number that does not agree with the other tables.
func Broken(t testing.TB, d *Desk) []string {
	t.Helper()
	return append(Column[string](t, d, brokenTotals), Column[string](t, d, brokenDays)...)
}

const brokenTotals = `
WITH proof AS (
	SELECT p.id, p.site_id, p.uri, coalesce(c.pv, 0) AS pv, coalesce(c.uv, 0) AS uv, coalesce(c.hot, 0) AS hot,
	       coalesce(r.visitors, 0) AS visitors, coalesce(r.last_rank, 0) AS last_rank, coalesce(v.days, 0) AS days
	FROM pages p LEFT JOIN counters c ON c.page_id = p.id LEFT JOIN (
		SELECT page_id, count(*) AS visitors, max(rank) AS last_rank
		FROM (SELECT page_id, rank FROM visitors UNION ALL SELECT page_id, rank FROM erased_ranks) AS r
		GROUP BY page_id
	) AS r ON r.page_id = p.id LEFT JOIN (
		SELECT page_id, sum(visitors) AS days
		FROM (
			SELECT page_id, day_id, 1 AS visitors, true AS kept FROM visits
			UNION ALL
			SELECT page_id, day_id, visitors, true FROM erased_visits
			UNION ALL
			SELECT page_id, day_id, pv, false FROM days
		) AS v JOIN pages p ON p.id = v.page_id LEFT JOIN visits_kept k USING (app_id)
		WHERE kept = (day_id >= coalesce(k.from_day, 0))
		GROUP BY page_id
	) AS v ON v.page_id = p.id
)
SELECT format('%s: pv %s uv %s hot %s, but %s visitors, last rank %s, %s visitor days', uri, pv, uv, hot, visitors, last_rank, days)
FROM proof WHERE uv <> visitors OR uv <> last_rank OR pv <> days
UNION ALL
SELECT format('%s: hot %s, its pages %s; uv %s, pages at most %s in all %s', s.uri, s.hot, sum(p.hot), s.uv, max(p.uv), sum(p.uv))
FROM proof s JOIN proof p ON p.site_id = s.id
GROUP BY s.id, s.uri, s.hot, s.uv, s.pv
HAVING s.hot <> sum(p.hot) OR s.uv NOT BETWEEN max(p.uv) AND sum(p.uv) OR s.pv NOT BETWEEN max(p.pv) AND sum(p.pv)
UNION ALL
SELECT format('%s: visits by nobody', v.page_id)
FROM visits v LEFT JOIN visitors w USING (page_id, ip)
WHERE w.ip IS NULL`

// brokenDays compares the daily numbers with the totals and the stored rows. Pages named (deleted) hold the sums of
// deleted pages. For some of their visitors, no table records whether they were new on a day. So for these pages,
// brokenDays only checks that the numbers of new and returning visitors are within the possible range.
const brokenDays = `
WITH visits AS MATERIALIZED ( -- each of its partitions is planned and begun once, which takes longest here
	SELECT * FROM footfall.visits
), returns AS MATERIALIZED (
	SELECT * FROM footfall.returns
), daily AS (
	SELECT page_id, sum(hot) AS hot, sum(pv) AS pv, sum(new_visitors) AS new_visitors FROM days GROUP BY page_id
), back AS (
	SELECT page_id, sum(visitors) AS visitors FROM returns GROUP BY page_id
), by_rows AS (
	SELECT page_id, day_id, count(*) AS visitors FROM visits GROUP BY page_id, day_id
	UNION ALL
	SELECT page_id, day_id, visitors FROM erased_visits
)
SELECT format('%s: hot %s, pv %s, uv %s, but by days %s, %s, %s, returns %s',
       p.uri, c.hot, c.pv, c.uv, d.hot, d.pv, d.new_visitors, r.visitors)
FROM counters c JOIN pages p ON p.id = c.page_id LEFT JOIN daily d USING (page_id) LEFT JOIN back r USING (page_id)
WHERE coalesce(d.hot, 0) <> c.hot OR coalesce(d.pv, 0) <> c.pv
   OR p.uri NOT LIKE '%/(deleted)' AND (c.uv <> coalesce(d.new_visitors, 0) OR c.pv - c.uv <> coalesce(r.visitors, 0))
   OR c.uv NOT BETWEEN coalesce(d.new_visitors, 0) AND c.pv - coalesce(r.visitors, 0)
UNION ALL
SELECT format('page %s on day %s: pv %s, but %s rows', d.page_id, d.day_id, d.pv, sum(v.visitors))
FROM days d JOIN pages p ON p.id = d.page_id LEFT JOIN visits_kept k USING (app_id) LEFT JOIN by_rows v USING (page_id, day_id)
WHERE d.day_id >= coalesce(k.from_day, 0)
GROUP BY d.page_id, d.day_id
HAVING d.pv <> coalesce(sum(v.visitors), 0)
UNION ALL
SELECT format('page %s on day %s after %s: %s returned, but %s rows', page_id, day_id, previous_day, r.visitors, v.visitors)
FROM (
	SELECT r.* FROM returns r JOIN pages p ON p.id = r.page_id LEFT JOIN visits_kept k USING (app_id)
	WHERE r.previous_day >= coalesce(k.from_day, 0)
) AS r FULL JOIN (
	SELECT page_id, day_id, previous_day, count(*) AS visitors
	FROM (
		SELECT page_id, day_id, lag(day_id) OVER (PARTITION BY page_id, ip ORDER BY day_id) AS previous_day
		FROM visits v JOIN pages p ON p.id = v.page_id LEFT JOIN visits_kept k USING (app_id)
		WHERE v.day_id >= coalesce(k.from_day, 0)
	) AS w
	WHERE previous_day IS NOT NULL
	GROUP BY page_id, day_id, previous_day
) AS v USING (page_id, day_id, previous_day)
WHERE r.visitors IS DISTINCT FROM v.visitors
  AND page_id NOT IN (SELECT page_id FROM erased_visits UNION SELECT id FROM pages WHERE uri LIKE '%/(deleted)')
UNION ALL
SELECT format('page %s on day %s: %s returned after %s, but by rows and erased rows %s',
       page_id, day_id, r.visitors, previous_day, v.visitors)
FROM (
	SELECT r.* FROM returns r JOIN pages p ON p.id = r.page_id LEFT JOIN visits_kept k USING (app_id)
	WHERE r.day_id >= coalesce(k.from_day, 0)
) AS r FULL JOIN (
	SELECT v.page_id, v.day_id, v.previous_day, sum(v.visitors) AS visitors
	FROM (
		SELECT page_id, day_id, previous_day, 1 AS visitors FROM visits
		UNION ALL
		SELECT page_id, day_id, previous_day, visitors FROM erased_visits
	) AS v JOIN pages p ON p.id = v.page_id LEFT JOIN visits_kept k USING (app_id)
	WHERE v.previous_day > 0 AND v.day_id >= coalesce(k.from_day, 0)
	GROUP BY v.page_id, v.day_id, v.previous_day
) AS v USING (page_id, day_id, previous_day)
WHERE r.visitors IS DISTINCT FROM v.visitors
UNION ALL
SELECT format('page %s on day %s has site %s', d.page_id, d.day_id, d.site_id)
FROM days d JOIN pages p ON p.id = d.page_id WHERE d.site_id IS DISTINCT FROM p.site_id
UNION ALL
SELECT format('site %s on day %s: hot %s, its pages %s', s.page_id, s.day_id, s.hot, sum(p.hot))
FROM days s LEFT JOIN days p ON p.site_id = s.page_id AND p.day_id = s.day_id
WHERE s.site_id IS NULL
GROUP BY s.page_id, s.day_id
HAVING s.hot IS DISTINCT FROM sum(p.hot)`
