-- The history of changes that operators have made.

-- name: ChangesList :many
-- The last changes of an app, the latest first. If @app is null, these are the changes of all apps, and the changes
-- that concern no app. If @began is not null, it is the time when the app was added. The changes of an earlier app with
-- the same name are then left out. A loaded or moved app keeps its original time of creation, which may be before the
-- deletion of the earlier app. So changes up to this deletion are left out, too.
SELECT at, who, app, what, was, is_now
FROM changes
WHERE (sqlc.narg(app)::text IS NULL
       OR app = sqlc.narg(app))
  AND (sqlc.narg(began)::timestamptz IS NULL
       OR at >= sqlc.narg(began)
      AND id > coalesce((SELECT max(d.id) FROM changes AS d WHERE d.app = sqlc.narg(app) AND d.what = 'app' AND d.is_now = 'deleted'), 0))
ORDER BY id DESC
LIMIT @most;
