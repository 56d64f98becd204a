-- Keys, and links that show an app or one of its sites, for operators.

-- name: KeysList :many
-- The keys of an app, including revoked keys, oldest first.
SELECT name, scopes, created_at, used_at, revoked_at
FROM keys
WHERE app_id = @app_id
ORDER BY id;

-- name: KeyAdd :exec
-- Adds a key of an app. Its name and hash are random: a duplicate is an error.
INSERT INTO keys (app_id, name, hash, scopes)
VALUES (@app_id, @name, @hash, @scopes);

-- name: KeyRevoke :execrows
-- Revokes a key of an app by its name. No row is changed if the key does not exist or is already revoked.
UPDATE keys
SET revoked_at = now()
WHERE app_id = @app_id
  AND name = @name
  AND revoked_at IS NULL;

-- name: SharesList :many
-- The links that show an app or one of its sites, including revoked and expired links, oldest first.
SELECT name, site, created_at, last_day, revoked_at
FROM shares
WHERE app_id = @app_id
ORDER BY id;

-- name: ShareAdd :exec
-- Adds a link. Its name and hash are random: a duplicate is an error.
INSERT INTO shares (app_id, name, hash, site, last_day)
VALUES (@app_id, @name, @hash, @site, @last_day);

-- name: ShareRevoke :execrows
-- Revokes a link of an app by its name. No row is changed if the link does not exist or is already revoked.
UPDATE shares
SET revoked_at = now()
WHERE app_id = @app_id
  AND name = @name
  AND revoked_at IS NULL;

-- name: AdminKeysList :many
-- The keys for all apps, including revoked keys, oldest first.
SELECT name, '{admin}'::text[] AS scopes, created_at, used_at, revoked_at
FROM admin_keys
ORDER BY id;

-- name: AdminKeyAdd :exec
-- Adds a key for all apps. Its name and hash are random: a duplicate is an error.
INSERT INTO admin_keys (name, hash)
VALUES (@name, @hash);

-- name: AdminKeyRevoke :execrows
-- Revokes a key for all apps by its name. No row is changed if the key does not exist or is already revoked.
UPDATE admin_keys
SET revoked_at = now()
WHERE name = @name
  AND revoked_at IS NULL;

-- name: AdminKeyUse :one
-- The name of a key for all apps. No row if the key does not exist or is revoked. Also stores when the key was last
-- used, at most once a minute.
WITH used AS (
    UPDATE admin_keys AS u
    SET used_at = now()
    WHERE u.hash = @hash
      AND u.revoked_at IS NULL
      AND (u.used_at IS NULL OR u.used_at < now() - interval '1 minute')
)
SELECT k.name
FROM admin_keys AS k
WHERE k.hash = @hash
  AND k.revoked_at IS NULL;
