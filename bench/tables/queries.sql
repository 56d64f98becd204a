-- The benchmarks run these statements to prepare Footfall's tables before a measurement, and to read them afterwards.

-- name: TargetsMake :exec
-- Creates a site and its pages, for the only app in the database.
WITH site AS (
    INSERT INTO pages (app_id, uri)
    SELECT id, @site::text
    FROM apps
    RETURNING id, app_id
)
INSERT INTO pages (app_id, site_id, uri)
SELECT app_id, id, unnest(@pages::text[])
FROM site;

-- name: TargetsAmiss :one
-- Counts the targets (pages and sites) whose numbers in counters contradict the rows in visitors and visits, or whose
-- visitors do not have the ranks 1 to uv.
SELECT count(*)
FROM counters AS c
LEFT JOIN (
    SELECT page_id, count(*) AS visitors, count(DISTINCT rank) AS ranks, max(rank) AS last
    FROM visitors
    GROUP BY page_id
) AS v ON v.page_id = c.page_id
LEFT JOIN (
    SELECT page_id, count(*) AS visits
    FROM visits
    GROUP BY page_id
) AS d ON d.page_id = c.page_id
WHERE (c.uv, c.uv, c.uv, c.pv) IS DISTINCT FROM (v.visitors, v.ranks, v.last, coalesce(d.visits, 0));

-- name: Checkpoint :exec
-- Writes changed pages to disk. Otherwise PostgreSQL would write the changes of earlier runs during the next measurement.
CHECKPOINT;

-- name: ServerVersion :one
-- Returns the server's version, and its settings for durability, which affect measurements.
SELECT current_setting('server_version')::text AS version,
       current_setting('fsync')::text AS fsync,
       current_setting('synchronous_commit')::text AS synchronous_commit;

-- name: Vacuum :exec
-- Vacuums and analyzes all tables, so that autovacuum has no work during the measurement.
VACUUM (ANALYZE);

-- name: CountersByURI :many
-- Returns the numbers of every target.
SELECT p.uri, c.pv, c.uv, c.hot
FROM counters AS c
JOIN pages AS p ON p.id = c.page_id;

-- name: VisitorsByURI :many
-- Returns the visitors of every target, with their ranks.
SELECT p.uri, v.ip, v.rank
FROM visitors AS v
JOIN pages AS p ON p.id = v.page_id;
