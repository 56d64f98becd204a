-- What `bench generate` makes of the visits that it has drawn, and what it asks of the tables
-- afterwards. Rows are written day by day, since that is how tables grow.

-- name: TargetsInOrder :many
-- The targets of an app in the order in which they were made.
SELECT id, uri
FROM pages
WHERE app_id = @app_id
ORDER BY id;

-- name: TallyPut :exec
-- How many pages an app got on its last day that brought any, for its limit.
INSERT INTO page_tallies (app_id, day_id, today)
VALUES (@app_id, @day_id, @today);

-- name: CameMake :exec
-- Which days a visitor came to a target, page or site, and when first on each.
INSERT INTO came (page_id, site_id, day_id, previous_day, n, hot, ip)
SELECT page_id, site_id, day_id, lag(day_id, 1, 0) OVER (PARTITION BY page_id, ip ORDER BY day_id), n, hot, ip
FROM (
    SELECT page_id, site_id, day_id, min(n) AS n, count(*) AS hot, ip
    FROM drawn
    GROUP BY page_id, site_id, day_id, ip
    UNION ALL
    SELECT site_id, NULL, day_id, min(n), count(*), ip
    FROM drawn
    GROUP BY site_id, day_id, ip
) AS c;

-- name: CameAnalyze :exec
-- Lets the planner know how many there are.
ANALYZE came;

-- name: VisitorsMake :exec
-- Ranks are in the order of first visits.
INSERT INTO visitors (page_id, rank, first_day, last_day, ip)
SELECT page_id, row_number() OVER (PARTITION BY page_id ORDER BY min(n)), min(day_id), max(day_id), ip
FROM came
GROUP BY page_id, ip
ORDER BY min(day_id), page_id, ip;

-- name: VisitsMake :exec
-- The partitions of the days are there.
INSERT INTO visits (page_id, day_id, previous_day, ip)
SELECT page_id, day_id, previous_day, ip
FROM came
ORDER BY day_id, page_id, ip;

-- name: DaysMake :exec
-- The daily numbers.
INSERT INTO days (page_id, site_id, day_id, hot, pv, new_visitors)
SELECT page_id, site_id, day_id, sum(hot), count(*), count(*) FILTER (WHERE previous_day = 0)
FROM came
GROUP BY page_id, site_id, day_id
ORDER BY day_id, page_id;

-- name: ReturnsMake :exec
-- How many came again, and since when.
INSERT INTO open_returns (page_id, day_id, previous_day, visitors)
SELECT page_id, day_id, previous_day, count(*)
FROM came
WHERE previous_day > 0
GROUP BY page_id, day_id, previous_day
ORDER BY day_id, page_id, previous_day;

-- name: CountersMake :exec
-- The sums.
INSERT INTO counters (page_id, hot, pv, uv)
SELECT page_id, sum(hot), count(*), count(*) FILTER (WHERE previous_day = 0)
FROM came
GROUP BY page_id
ORDER BY page_id;

-- name: ClosedDaysComplete :exec
-- Makes what a closed day has of every app for an app that got visits of it later.
SELECT make_sketches(c.day_id, @app_id::integer), make_tops(@app_id::integer, c.day_id)
FROM closed_days AS c
WHERE c.day_id BETWEEN @from_day AND @to_day;

-- name: TablesVacuum :exec
-- What autovacuum does in its own time.
VACUUM (ANALYZE) pages, counters, visitors, visits, days, open_returns, packed_returns;
