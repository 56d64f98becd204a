-- What returns take after a year of 102 targets to which somebody comes back every day from every
-- day before, and how long lists of them take. In a new folder, for some minutes:
--
--   bin/footfall app add daily --access open --data DIR
--   bin/footfall psql --data DIR -- -f bench/returns.sql
\set ON_ERROR_STOP on
\set QUIET on
\pset footer off
\if :{?days}
\else
    \set days 365
\endif

CREATE TEMP TABLE year AS
SELECT n, to_char(date '2025-01-01' + n - 1, 'YYYYMMDD')::integer AS day
FROM generate_series(1, :days) AS n;

CREATE TEMP TABLE targets AS
WITH sites AS (
    INSERT INTO pages (app_id, uri)
    SELECT a.id, 'daily.example'
    FROM apps AS a
    WHERE a.name = 'daily'
    RETURNING id, app_id
), made AS (
    INSERT INTO pages (app_id, site_id, uri)
    SELECT s.app_id, s.id, 'daily.example/' || n
    FROM sites AS s
    CROSS JOIN generate_series(1, 101) AS n
    RETURNING id, site_id
)
SELECT id, NULL::bigint AS site_id FROM sites
UNION ALL
SELECT id, site_id FROM made;

INSERT INTO days (page_id, site_id, day_id, hot, pv, new_visitors)
SELECT t.id, t.site_id, y.day, 5000 + t.id, 1000 + y.n - 1, 1000
FROM year AS y
CROSS JOIN targets AS t
ORDER BY y.n, t.id;

INSERT INTO counters (page_id, hot, pv, uv)
SELECT d.page_id, sum(d.hot), sum(d.pv), sum(d.new_visitors)
FROM days AS d
JOIN targets AS t ON t.id = d.page_id
GROUP BY d.page_id;

-- Day by day, as batches, the daily task and autovacuum do. The last day is not closed yet.
\o /dev/null
SELECT format('INSERT INTO open_returns SELECT t.id, %s, y.day, 1 FROM targets AS t CROSS JOIN year AS y WHERE y.n < %s ORDER BY t.id, y.n', day, n),
       'SELECT close_day(' || CASE WHEN n < :days THEN day END || ')',
       'DO $$
        DECLARE
            part record;
            next bigint := 0;
        BEGIN
            LOOP
                SELECT * INTO part FROM pack_returns(next, 1000);
                COMMIT;
                EXIT WHEN part.packed = 0;
                next := part.last_page;
            END LOOP;
        END $$',
       'VACUUM (ANALYZE) open_returns, packed_returns, tops'
FROM year
ORDER BY n
\gexec
VACUUM (ANALYZE) days, pages, counters;
\o

SELECT c.relname AS table, l.links, round(pg_total_relation_size(c.oid) / 1e6, 1) AS mb
FROM (SELECT 'open_returns'::regclass AS id, (SELECT sum(visitors) FROM open_returns) AS links
      UNION ALL
      SELECT 'packed_returns', (SELECT sum(returned_from_before(previous_days, visitors, 0)) FROM packed_returns)) AS l
JOIN pg_class AS c ON c.oid = l.id;

-- Each list twice, since the first time much is not in memory.
SELECT max(day)                                 AS last,
       max(day) FILTER (WHERE n = 2)            AS second,
       min(day) FILTER (WHERE n > :days - 30)   AS month,
       min(day) FILTER (WHERE n > :days - 182)  AS half_year
FROM year
\gset
\timing on
SELECT 'all days' AS list, count(*) AS pages, sum(uniques) AS uniques FROM report.top_pages('daily', 0, 99991231, 101)
\g
\g
SELECT '30 days' AS list, count(*) AS pages, sum(uniques) AS uniques FROM report.top_pages('daily', :month, :last, 101)
\g
\g
SELECT 'half a year' AS list, count(*) AS pages, sum(uniques) AS uniques FROM report.top_pages('daily', :half_year, :last, 101)
\g
\g
SELECT 'all but a day' AS list, count(*) AS pages, sum(uniques) AS uniques FROM report.top_pages('daily', :second, :last, 101)
\g
\g
