-- Targets: from uri to id and numbers.

-- name: PagesFind :many
-- The ids of those targets of an app that exist. One by one, as visitors are looked up: writers plan it once.
SELECT asked.uri::text AS uri, found.id
FROM (SELECT unnest(@uris::text[]) AS uri) AS asked
CROSS JOIN LATERAL (
    SELECT p.id
    FROM pages AS p
    WHERE p.app_id = @app_id
      AND p.key = page_key(asked.uri)
    LIMIT 1
) AS found;

-- name: SitesIntern :exec
-- Makes the sites that are not there yet. In order of key, so that two instances that meet never deadlock.
INSERT INTO pages (app_id, uri)
SELECT @app_id, asked.uri
FROM (SELECT DISTINCT unnest(@sites::text[]) AS uri) AS asked
ORDER BY page_key(asked.uri)
ON CONFLICT (app_id, key) DO NOTHING;

-- name: PagesIntern :exec
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
-- The numbers of some targets of an app, and one visitor's rank in each (0: never came). Targets that were never counted
-- are left out.
SELECT p.uri, c.pv, c.uv, c.hot,
       coalesce((SELECT v.rank FROM visitors AS v WHERE v.page_id = p.id AND v.ip = sqlc.narg(ip)::inet), 0)::bigint AS rank
FROM pages AS p
JOIN counters AS c ON c.page_id = p.id
WHERE p.app_id = @app_id
  AND p.key IN (SELECT page_key(unnest(@uris::text[])));
