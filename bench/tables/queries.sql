-- Statements by which the benchmarks prepare Footfall's tables before a measurement, and read them afterwards.

-- name: TargetsMake :exec
-- Creates the site and the pages of the only app.
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
-- Counts the targets whose sums differ from their rows, or whose ranks are not 1..uv.
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
-- Writes dirty pages of earlier runs to disk, so that the next run does not pay for them.
CHECKPOINT;

-- name: ServerVersion :one
-- Server settings that affect measurements: the version, and durability.
SELECT current_setting('server_version')::text AS version,
       current_setting('fsync')::text AS fsync,
       current_setting('synchronous_commit')::text AS synchronous_commit;

-- name: Vacuum :exec
-- Does the work that autovacuum would do later.
VACUUM (ANALYZE);

-- name: CountersByURI :many
-- The sums of every target.
SELECT p.uri, c.pv, c.uv, c.hot
FROM counters AS c
JOIN pages AS p ON p.id = c.page_id;

-- name: VisitorsByURI :many
-- The visitors of every target, with their ranks.
SELECT p.uri, v.ip, v.rank
FROM visitors AS v
JOIN pages AS p ON p.id = v.page_id;
