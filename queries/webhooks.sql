-- Webhooks: where it is told that a target has had a visitor with a round number.

-- name: WebhookAdd :one
-- Adds a webhook, which is told of the visitors to come, and returns its number; no row if the app
-- has as many as it may.
INSERT INTO webhooks (app_id, uri, url, private, seen)
SELECT @app_id::integer, @uri::text, @url, @private,
       coalesce((SELECT c.uv FROM pages AS p JOIN counters AS c ON c.page_id = p.id WHERE p.app_id = @app_id AND p.key = page_key(@uri)), 0)
WHERE (SELECT count(*) FROM webhooks AS w WHERE w.app_id = @app_id) < @most::bigint
RETURNING id;

-- name: WebhooksList :many
-- The webhooks of an app.
SELECT id, uri, url, cardinality(waiting) AS waiting, since, try_at
FROM webhooks
WHERE app_id = @app_id
ORDER BY id;

-- name: WebhookRemove :one
-- Removes a webhook of an app by its number; no row if there is none.
DELETE FROM webhooks
WHERE app_id = @app_id
  AND id = @id
RETURNING uri;

-- name: WebhooksOfTargetDelete :exec
-- Deletes the webhooks of a target.
DELETE FROM webhooks
WHERE app_id = @app_id
  AND key = page_key(@uri);

-- name: RoundNumbersSee :exec
-- Lets webhooks wait to be called for the round numbers that were given meanwhile. Where there is
-- none that is not even planned.
SELECT see_round_numbers()
WHERE EXISTS (SELECT FROM webhooks);

-- name: WebhooksTry :many
-- Takes the first call of each webhook that is to be tried now, and keeps others from it for so many
-- seconds.
UPDATE webhooks
SET try_at = now() + make_interval(secs => @seconds)
WHERE id IN (SELECT w.id FROM webhooks AS w WHERE w.waiting <> '{}' AND w.try_at <= now() FOR UPDATE SKIP LOCKED)
RETURNING id, url, private, waiting[1]::text AS body;

-- name: WebhookTaken :exec
-- Takes out the call that a receiver has taken, if it is still the first.
UPDATE webhooks
SET waiting = waiting[2:],
    since = now(),
    try_at = now()
WHERE id = @id
  AND waiting[1] = @body::text;

-- name: WebhookRest :exec
-- Lets a webhook wait for as long again as it has, from a second up to so many.
UPDATE webhooks
SET try_at = now() + least(greatest(now() - since, interval '1 second'), make_interval(secs => @most))
WHERE id = @id;

-- name: WebhooksFailing :many
-- Webhooks whose first call has waited for so many seconds.
SELECT w.id, a.name AS app, w.since, cardinality(w.waiting) AS waiting
FROM webhooks AS w
JOIN apps AS a ON a.id = w.app_id
WHERE w.waiting <> '{}'
  AND w.since < now() - make_interval(secs => @seconds)
ORDER BY w.id;
