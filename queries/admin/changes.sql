-- The log of changes.

-- name: ChangesList :many
-- The last changes of an app (null: of all apps, and those that concern no app), the latest first. began: when
-- the app was added. It excludes changes of an earlier app of the same name, and may be older than an app that
-- was deleted here, if the present one was loaded or moved here.
SELECT at, who, app, what, was, is_now
FROM changes
WHERE (sqlc.narg(app)::text IS NULL
       OR app = sqlc.narg(app))
  AND (sqlc.narg(began)::timestamptz IS NULL
       OR at >= sqlc.narg(began)
      AND id > coalesce((SELECT max(d.id) FROM changes AS d WHERE d.app = sqlc.narg(app) AND d.what = 'app' AND d.is_now = 'deleted'), 0))
ORDER BY id DESC
LIMIT @most;
