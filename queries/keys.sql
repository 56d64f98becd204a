-- Keys: with what callers show that they are of an app.

-- name: KeysOpen :many
-- The keys that open something, for the instances that keep them in memory.
SELECT id, app_id, hash, scopes
FROM keys
WHERE revoked_at IS NULL;

-- name: KeysList :many
-- The keys of an app, revoked ones included, oldest first.
SELECT name, scopes, created_at, used_at, revoked_at
FROM keys
WHERE app_id = @app_id
ORDER BY id;

-- name: KeyAdd :exec
-- Adds a key of an app. Its name and hash are random: another one's would be an error.
INSERT INTO keys (app_id, name, hash, scopes)
VALUES (@app_id, @name, @hash, @scopes);

-- name: KeyRevoke :execrows
-- Revokes a key of an app by its name; no row if there is none, or if it is revoked.
UPDATE keys
SET revoked_at = now()
WHERE app_id = @app_id
  AND name = @name
  AND revoked_at IS NULL;

-- name: KeysUsed :exec
-- Remembers when keys were used last. The time of the database holds, as for the other columns.
UPDATE keys
SET used_at = now()
WHERE id = ANY (@ids::integer[]);
