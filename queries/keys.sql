-- Keys, with which callers show that they are of an app, and links that show one to whoever has them.

-- name: KeysOpen :many
-- The keys that open something, for the instances that keep them in memory.
SELECT id, app_id, hash, scopes
FROM keys
WHERE revoked_at IS NULL;

-- name: KeysUsed :exec
-- Remembers when keys were used last. The time of the database holds, as for the other columns.
UPDATE keys
SET used_at = now()
WHERE id = ANY (@ids::integer[]);

-- name: SharesOpen :many
-- The links that are not revoked, for the instances that keep them in memory.
SELECT app_id, hash, site, last_day
FROM shares
WHERE revoked_at IS NULL;
