-- The log of changes.

-- name: ChangesList :many
-- The last changes of an app, the latest first. If app is null, returns the changes of all apps, and those
-- that concern no app. began is the time when the app was added: it excludes changes of an earlier app of the
-- same name. An app that was loaded or moved here may have been added before an earlier app of that name was
-- deleted here. So changes up to this deletion are excluded, too.
SELECT at, who, app, what, was, is_now
FROM changes
WHERE (sqlc.narg(app)::text IS NULL
       OR app = sqlc.narg(app))
  AND (sqlc.narg(began)::timestamptz IS NULL
       OR at >= sqlc.narg(began)
      AND id > coalesce((SELECT max(d.id) FROM changes AS d WHERE d.app = sqlc.narg(app) AND d.what = 'app' AND d.is_now = 'deleted'), 0))
ORDER BY id DESC
LIMIT @most;
