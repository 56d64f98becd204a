-- Targets (pages, sites and events): finding, creating and reading them by uri.

-- name: PagesFind :many
-- The ids of the given targets that exist in an app. counts_so is true if this database counts visits
-- of the app, and the app still has the given settings for days and visitors. Once an app has
-- targets, these settings change only if its addresses are hashed or the app is moved. Looks up one
-- target at a time, because writers plan the query once, perhaps while the table is small.
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
-- Locks an app's row of page_tallies, which counts the pages and tags that were created on a day.
-- Until this transaction ends, no other transaction can create pages or tags of the app. Runs before
-- any page or tag is created. Returns how many pages and tags were created on the day. If another
-- instance's clock has already started a later day, the numbers are those of that later day. Fails
-- with SQLSTATE FF003 if the day has not started in any time zone.
INSERT INTO page_tallies AS t (app_id, day_id, today)
VALUES (@app_id, require_day_near(@day, 0), 0)
ON CONFLICT (app_id) DO UPDATE
    SET day_id         = greatest(t.day_id, excluded.day_id),
        today          = CASE WHEN t.day_id < excluded.day_id THEN 0 ELSE t.today END,
        tags_today     = CASE WHEN t.day_id < excluded.day_id THEN 0 ELSE t.tags_today END,
        own_tags_today = CASE WHEN t.day_id < excluded.day_id THEN 0 ELSE t.own_tags_today END
RETURNING today, tags_today, own_tags_today;

-- name: PagesTallyAdd :exec
-- Adds created pages and tags to the app's row of page_tallies, which PagesTallyLock has locked.
UPDATE page_tallies
SET today          = today + @pages,
    tags_today     = tags_today + @tags,
    own_tags_today = own_tags_today + @own_tags
WHERE app_id = @app_id;

-- name: AppCountsBy :one
-- An app's settings for days and visitors. tz is '' if the app has been moved or is being moved.
-- Returns no row if the app is deleted or being deleted. Runs after this transaction has created
-- pages: by then, any concurrent change of the settings has finished. Later, the settings change only
-- if the app's addresses are hashed or the app is moved.
SELECT (CASE WHEN moving_to IS NULL AND cell IS NULL THEN tz ELSE '' END)::text AS tz, visitor, ipv6_prefix
FROM apps
WHERE id = @id
  AND deleted_at IS NULL;

-- name: SitesIntern :execrows
-- Creates missing sites, in key order, so that two instances never deadlock.
INSERT INTO pages (app_id, uri)
SELECT @app_id, asked.uri
FROM (SELECT DISTINCT unnest(@sites::text[]) AS uri) AS asked
ORDER BY page_key(asked.uri)
ON CONFLICT (app_id, key) DO NOTHING;

-- name: PagesIntern :execrows
-- Creates missing pages, whose sites must exist, in key order like SitesIntern.
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
-- The numbers of an app's targets, and a visitor's rank at each target (0: never visited). Targets
-- that were never counted are left out.
SELECT p.uri, c.pv, c.uv, c.hot,
       coalesce((SELECT v.rank FROM visitors AS v WHERE v.page_id = p.id AND v.ip = sqlc.narg(ip)::inet), 0)::bigint AS rank
FROM pages AS p
JOIN counters AS c ON c.page_id = p.id
WHERE p.app_id = @app_id
  AND p.key IN (SELECT page_key(unnest(@uris::text[])));

-- name: CountsOfDay :many
-- Like CountsGet, but also returns the numbers of a day (0 if the target has none).
SELECT p.uri, c.pv, c.uv, c.hot,
       coalesce((SELECT v.rank FROM visitors AS v WHERE v.page_id = p.id AND v.ip = sqlc.narg(ip)::inet), 0)::bigint AS rank,
       coalesce(d.hot, 0)::bigint AS today_hot, coalesce(d.pv, 0)::bigint AS today_pv
FROM pages AS p
JOIN counters AS c  ON c.page_id = p.id
LEFT JOIN days AS d ON d.page_id = p.id AND d.day_id = @day_id
WHERE p.app_id = @app_id
  AND p.key IN (SELECT page_key(unnest(@uris::text[])));

-- name: CountsOfVisits :many
-- The numbers of an app's targets. place is the target's place in the arrays (from 1). rank is the
-- rank of the visitor at the same place (0: never visited). Targets that were never counted are left
-- out. Looks up one target at a time, whatever the planner estimates.
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
