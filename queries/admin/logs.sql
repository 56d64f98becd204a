-- Logs that were imported.

-- name: LogsList :many
-- The logs of an app by server, each with how far it was counted.
SELECT l.id, l.server, l.file, coalesce(l.counted, 0)::bigint AS counted, l.claimed, l.begun_at, l.used_at, l.last_at, l.rules, l.told
FROM logs AS l
WHERE l.app_id = @app_id
ORDER BY l.server, l.file, l.id;

-- name: LogDelete :execrows
-- Forgets a log of an app: a file that has it counts from its beginning.
DELETE FROM logs
WHERE id = @id
  AND app_id = @app_id;
