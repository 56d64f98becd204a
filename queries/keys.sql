-- Keys that authenticate callers of an app, and links that show an app to anyone who has them.

-- name: KeysOpen :many
-- The keys that are not revoked, for the instances that cache them.
SELECT id, app_id, hash, scopes
FROM keys
WHERE revoked_at IS NULL;

-- name: KeysUsed :exec
-- Stores when keys were last used, by the database's clock.
UPDATE keys
SET used_at = now()
WHERE id = ANY (@ids::integer[]);

-- name: SharesOpen :many
-- The links that are not revoked, for the instances that cache them.
SELECT app_id, hash, site, last_day
FROM shares
WHERE revoked_at IS NULL;
