-- The history of changes that operators have made.

-- name: ChangesList :many
-- The last changes of an app, the latest first. If app is null: the changes of all apps, and those that concern no
-- app. began is the time when the app was added, and excludes the changes of an earlier app with the same name. A
-- loaded or moved app keeps its original time of creation, which may be before the deletion of the earlier app. So
-- changes up to that deletion are excluded as well.
SELECT at, who, app, what, was, is_now
FROM changes
WHERE (sqlc.narg(app)::text IS NULL
       OR app = sqlc.narg(app))
  AND (sqlc.narg(began)::timestamptz IS NULL
       OR at >= sqlc.narg(began)
      AND id > coalesce((SELECT max(d.id) FROM changes AS d WHERE d.app = sqlc.narg(app) AND d.what = 'app' AND d.is_now = 'deleted'), 0))
ORDER BY id DESC
LIMIT @most;
