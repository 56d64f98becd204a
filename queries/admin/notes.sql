-- Notes: short texts of users about a day, which charts show.

-- name: NoteAdd :one
-- Adds a note and returns its id. No row if the app has the maximum number of notes, or does not
-- exist any more.
INSERT INTO notes (app_id, site, day_id, text)
SELECT a.id, @site, @day, @text
FROM apps AS a
WHERE a.id = @app_id
  AND a.deleted_at IS NULL
  AND (SELECT count(*) FROM notes AS n WHERE n.app_id = a.id) < @most::bigint
RETURNING id;

-- name: NotesList :many
-- The notes of an app, the latest day first.
SELECT id, site, day_id, text
FROM notes
WHERE app_id = @app_id
ORDER BY day_id DESC, id DESC;

-- name: NoteRemove :one
-- Removes a note of an app by its id and returns it. No row if it does not exist.
DELETE FROM notes
WHERE app_id = @app_id
  AND id = @id
RETURNING id, site, day_id, text;
