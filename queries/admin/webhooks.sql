-- Webhooks: URLs that Footfall calls when a page or site has had a round number of visitors.

-- name: WebhookAdd :one
-- Adds a webhook, which reports only visitors who arrive later, and returns its id. No row if the app has the maximum
-- number of webhooks.
INSERT INTO webhooks (app_id, uri, url, private, salt, seen)
SELECT @app_id::integer, @uri::text, @url, @private, @salt,
       coalesce((SELECT c.uv FROM pages AS p JOIN counters AS c ON c.page_id = p.id WHERE p.app_id = @app_id AND p.key = page_key(@uri)), 0)
WHERE (SELECT count(*) FROM webhooks AS w WHERE w.app_id = @app_id) < @most::bigint
RETURNING id;

-- name: WebhooksList :many
-- The webhooks of an app.
SELECT id, uri, url, private, cardinality(waiting) AS waiting, since, try_at, answers, salt
FROM webhooks
WHERE app_id = @app_id
ORDER BY id;

-- name: WebhookRemove :one
-- Removes a webhook of an app by its id, and returns its page or site. No row if the webhook does not exist.
DELETE FROM webhooks
WHERE app_id = @app_id
  AND id = @id
RETURNING uri;

-- name: WebhooksOfTargetDelete :exec
-- Deletes the webhooks of a page or site.
DELETE FROM webhooks
WHERE app_id = @app_id
  AND key = page_key(@uri);
