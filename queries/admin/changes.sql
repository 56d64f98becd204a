-- What was changed.

-- name: ChangesList :many
-- The last changes of an app (null: of all, and of what is no app's), the latest first. began: of the app that
-- was added then, and of none that had its name before; it may be older than one that was deleted here, where
-- it was loaded or has moved here.
SELECT at, who, app, what, was, is_now
FROM changes
WHERE (sqlc.narg(app)::text IS NULL
       OR app = sqlc.narg(app))
  AND (sqlc.narg(began)::timestamptz IS NULL
       OR at >= sqlc.narg(began)
      AND id > coalesce((SELECT max(d.id) FROM changes AS d WHERE d.app = sqlc.narg(app) AND d.what = 'app' AND d.is_now = 'deleted'), 0))
ORDER BY id DESC
LIMIT @most;
