-- Links that show an app, or a site of it, to whoever has them.

-- name: SharesOpen :many
-- The links that are not revoked, for the instances that keep them in memory.
SELECT app_id, hash, site, last_day
FROM shares
WHERE revoked_at IS NULL;

-- name: SharesList :many
-- The links of an app, revoked ones and those that are over included, oldest first.
SELECT name, site, created_at, last_day, revoked_at
FROM shares
WHERE app_id = @app_id
ORDER BY id;

-- name: ShareAdd :exec
-- Adds a link. Its name and hash are random: another one's would be an error.
INSERT INTO shares (app_id, name, hash, site, last_day)
VALUES (@app_id, @name, @hash, @site, @last_day);

-- name: ShareRevoke :execrows
-- Revokes a link of an app by its name; no row if there is none, or if it is revoked.
UPDATE shares
SET revoked_at = now()
WHERE app_id = @app_id
  AND name = @name
  AND revoked_at IS NULL;
