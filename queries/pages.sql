-- Targets: from uri to id and numbers.

-- name: PagesFind :many
-- The ids of those targets of an app that exist, and with each whether the app is there and tells
-- days and visitors apart as said: it goes on doing so, since that is fixed once there are targets, or
-- until it is moved.
-- One by one, as visitors are looked up: writers plan it once.
SELECT asked.uri::text AS uri, found.id,
       EXISTS (
           SELECT
           FROM apps AS a
           WHERE a.id = @app_id
             AND a.deleted_at IS NULL
             AND a.moving_to IS NULL
             AND a.cell IS NULL
             AND a.tz = @tz
             AND a.visitor = @visitor
             AND a.ipv6_prefix = @ipv6_prefix
       )::boolean AS counts_so
FROM (SELECT unnest(@uris::text[]) AS uri) AS asked
CROSS JOIN LATERAL (
    SELECT p.id
    FROM pages AS p
    WHERE p.app_id = @app_id
      AND p.key = page_key(asked.uri)
    LIMIT 1
) AS found;

-- name: PagesTallyLock :one
-- Lets this transaction alone make pages and tags of an app until it ends, so that it comes before
-- anything is made. Returns how many were made on the day. A day that is over by the clock
-- of another instance counts as the later one. Fails with SQLSTATE FF003 where the day has come
-- nowhere yet.
INSERT INTO page_tallies AS t (app_id, day_id, today)
VALUES (@app_id, require_day_near(@day, 0), 0)
ON CONFLICT (app_id) DO UPDATE
    SET day_id         = greatest(t.day_id, excluded.day_id),
        today          = CASE WHEN t.day_id < excluded.day_id THEN 0 ELSE t.today END,
        tags_today     = CASE WHEN t.day_id < excluded.day_id THEN 0 ELSE t.tags_today END,
        own_tags_today = CASE WHEN t.day_id < excluded.day_id THEN 0 ELSE t.own_tags_today END
RETURNING today, tags_today, own_tags_today;

-- name: PagesTallyAdd :exec
-- Adds pages and tags that were made, under the lock.
UPDATE page_tallies
SET today          = today + @pages,
    tags_today     = tags_today + @tags,
    own_tags_today = own_tags_today + @own_tags
WHERE app_id = @app_id;

-- name: AppCountsBy :one
-- How an app tells days and visitors apart, which is fixed once it has pages; no row if it is
-- deleted or being deleted. Asked after they were made: whoever was changing it has come to an end
-- before that. One that is moved tells nobody apart here any more.
SELECT (CASE WHEN moving_to IS NULL AND cell IS NULL THEN tz ELSE '' END)::text AS tz, visitor, ipv6_prefix
FROM apps
WHERE id = @id
  AND deleted_at IS NULL;

-- name: SitesIntern :execrows
-- Makes the sites that are not there yet. In order of key, so that two instances that meet never
-- deadlock.
INSERT INTO pages (app_id, uri)
SELECT @app_id, asked.uri
FROM (SELECT DISTINCT unnest(@sites::text[]) AS uri) AS asked
ORDER BY page_key(asked.uri)
ON CONFLICT (app_id, key) DO NOTHING;

-- name: PagesIntern :execrows
-- Makes the pages that are not there yet; their sites must be there. In order of key, as above.
INSERT INTO pages (app_id, site_id, uri)
SELECT @app_id,
       (SELECT s.id FROM pages AS s WHERE s.app_id = @app_id AND s.key = page_key(asked.site)),
       asked.uri
FROM (
    SELECT DISTINCT unnest(@pages::text[]) AS uri,
                    unnest(@sites::text[]) AS site
) AS asked
ORDER BY page_key(asked.uri)
ON CONFLICT (app_id, key) DO NOTHING;

-- name: CountsGet :many
-- The numbers of some targets of an app, and one visitor's rank in each (0: never came). Targets
-- that were never counted are left out.
SELECT p.uri, c.pv, c.uv, c.hot,
       coalesce((SELECT v.rank FROM visitors AS v WHERE v.page_id = p.id AND v.ip = sqlc.narg(ip)::inet), 0)::bigint AS rank
FROM pages AS p
JOIN counters AS c ON c.page_id = p.id
WHERE p.app_id = @app_id
  AND p.key IN (SELECT page_key(unnest(@uris::text[])));

-- name: CountsOfDay :many
-- The same, with the numbers of a day (0: none).
SELECT p.uri, c.pv, c.uv, c.hot,
       coalesce((SELECT v.rank FROM visitors AS v WHERE v.page_id = p.id AND v.ip = sqlc.narg(ip)::inet), 0)::bigint AS rank,
       coalesce(d.hot, 0)::bigint AS today_hot, coalesce(d.pv, 0)::bigint AS today_pv
FROM pages AS p
JOIN counters AS c  ON c.page_id = p.id
LEFT JOIN days AS d ON d.page_id = p.id AND d.day_id = @day_id
WHERE p.app_id = @app_id
  AND p.key IN (SELECT page_key(unnest(@uris::text[])));

-- name: CountsOfVisits :many
-- The numbers of some targets of an app, each with the rank there of the visitor beside it (0:
-- never came), and its place in the arrays (from 1). Targets that were never counted are left out.
-- One by one, however few the planner takes them for.
SELECT asked.place::integer AS place, found.pv, found.uv, found.hot, found.rank
FROM (
    SELECT unnest(@uris::text[])                   AS uri,
           unnest(@ips::inet[])                    AS ip,
           generate_subscripts(@uris::text[], 1)   AS place
) AS asked
CROSS JOIN LATERAL (
    SELECT c.pv, c.uv, c.hot,
           coalesce((SELECT v.rank FROM visitors AS v WHERE v.page_id = p.id AND v.ip = asked.ip), 0)::bigint AS rank
    FROM pages AS p
    JOIN counters AS c ON c.page_id = p.id
    WHERE p.app_id = @app_id
      AND p.key = page_key(asked.uri)
    LIMIT 1
) AS found;
