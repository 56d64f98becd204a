-- What was changed.

-- name: ChangesList :many
-- The last changes of an app (null: of all, and of what is no app's), the latest first.
SELECT at, who, app, what, was, is_now
FROM changes
WHERE sqlc.narg(app)::text IS NULL
   OR app = sqlc.narg(app)
ORDER BY id DESC
LIMIT @most;
