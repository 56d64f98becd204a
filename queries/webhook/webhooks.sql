-- Calls of webhooks that wait to be made.

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
RETURNING id, url, private, salt, waiting[1]::text AS body, (waiting[1]::json ->> 'id')::text AS call;

-- name: WebhookTaken :exec
-- Takes out the call that a receiver has taken, if it is still the first.
UPDATE webhooks
SET answers = (@answer::text || answers)[:5],
    waiting = waiting[2:],
    since = now(),
    try_at = now()
WHERE id = @id
  AND waiting[1] = @body::text;

-- name: WebhookBackOff :exec
-- Lets a webhook wait for as long again as it has, from a second up to so many.
UPDATE webhooks
SET answers = (@answer::text || answers)[:5],
    try_at = now() + least(greatest(now() - since, interval '1 second'), make_interval(secs => @most))
WHERE id = @id;
