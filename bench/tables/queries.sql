-- What the benchmarks put into Footfall's tables before they measure, and what they read there
-- afterwards.

-- name: TargetsMake :exec
-- Makes the site and the pages of the one app that there is.
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
-- How many targets have sums other than their rows, or ranks other than 1..uv.
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
-- Writes out what earlier runs left in memory, so that the next does not pay for it.
CHECKPOINT;

-- name: ServerVersion :one
-- What measurements depend on: the version of the server, and how it cares for durability.
SELECT current_setting('server_version')::text AS version,
       current_setting('fsync')::text AS fsync,
       current_setting('synchronous_commit')::text AS synchronous_commit;

-- name: Vacuum :exec
-- What autovacuum does in its own time.
VACUUM (ANALYZE);

-- name: CountersByURI :many
-- The sums of every target.
SELECT p.uri, c.pv, c.uv, c.hot
FROM counters AS c
JOIN pages AS p ON p.id = c.page_id;

-- name: VisitorsByURI :many
-- Who came to every target, and as which.
SELECT p.uri, v.ip, v.rank
FROM visitors AS v
JOIN pages AS p ON p.id = v.page_id;
