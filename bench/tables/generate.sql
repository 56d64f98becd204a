-- What `bench generate` fills beside COPY, and what it tells of the tables afterwards.

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

-- name: ClosedDaysComplete :exec
-- Makes what a closed day has of every app for an app that got visits of it later.
SELECT make_sketches(c.day_id, @app_id::integer), make_tops(@app_id::integer, c.day_id)
FROM closed_days AS c
WHERE c.day_id BETWEEN @from_day AND @to_day;

-- name: TablesVacuum :exec
-- What autovacuum does in its own time.
VACUUM (ANALYZE) pages, counters, visitors, visits, days, open_returns, packed_returns;
