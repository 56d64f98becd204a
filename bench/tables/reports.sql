-- What `bench reports` asks for, and what it compares the answers with.

-- name: ReportUniques :one
-- Uniques of a range of days.
SELECT u.uniques::bigint AS uniques, u.exact::boolean AS exact, u.standard_error::double precision AS standard_error
FROM report.uniques(@app::text, @target::text, @from_day::integer, @to_day::integer) AS u;

-- name: UniquesCounted :one
-- The plainest way.
SELECT count(DISTINCT ip)
FROM visits
WHERE page_id = @page_id
  AND day_id BETWEEN @from_day AND @to_day;

-- name: DaysOfApp :many
-- The days on which an app counted, in order.
SELECT DISTINCT d.day_id
FROM pages AS s
JOIN days AS d ON d.page_id = s.id
WHERE s.app_id = @app_id
  AND s.site_id IS NULL
ORDER BY d.day_id;

-- name: VisitsOfDay :many
-- Who came to which page of an app on a day.
SELECT p.id, p.uri, v.ip
FROM visits AS v
JOIN pages AS p ON p.id = v.page_id
WHERE p.app_id = @app_id
  AND p.site_id IS NOT NULL
  AND v.day_id = @day
ORDER BY p.uri, v.ip
LIMIT 300000;

-- name: AppsThatCounted :many
-- The apps that have counted something.
SELECT name
FROM apps AS a
WHERE EXISTS (SELECT FROM pages AS p WHERE p.app_id = a.id);

-- name: AppID :one
-- The number of an app.
SELECT id
FROM apps
WHERE name = @app;

-- name: TargetsInOrder :many
-- The targets of an app in the order in which they were made.
SELECT id, uri
FROM pages
WHERE app_id = @app_id
ORDER BY id;

-- name: Sizes :one
-- What the tables that grow with visits take, and how many rows they have: a visit to a page is one
-- to its site, too.
SELECT sum(c.reltuples) FILTER (WHERE i.inhparent IS NOT NULL)::bigint                    AS visits,
       sum(pg_total_relation_size(c.oid)) FILTER (WHERE i.inhparent IS NOT NULL)::bigint  AS visits_bytes,
       sum(c.reltuples) FILTER (WHERE i.inhparent IS NULL)::bigint                        AS visitors,
       sum(pg_total_relation_size(c.oid)) FILTER (WHERE i.inhparent IS NULL)::bigint      AS visitors_bytes,
       pg_database_size(current_database())::bigint                                       AS all_bytes
FROM pg_catalog.pg_class AS c
LEFT JOIN pg_catalog.pg_inherits AS i ON i.inhrelid = c.oid AND i.inhparent = 'visits'::regclass
WHERE c.oid = 'visitors'::regclass OR i.inhparent IS NOT NULL;
