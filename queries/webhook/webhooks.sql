-- Webhook calls that wait to be sent.

-- name: RoundNumbersSee :exec
-- Adds webhook calls for the round numbers that visitors have reached since the last time. While
-- webhooks is empty, the function is not called, so its body is not even planned.
SELECT see_round_numbers()
WHERE EXISTS (SELECT FROM webhooks);

-- name: WebhooksTry :many
-- Returns the first waiting call of each webhook whose next attempt is due. No other instance sends
-- these calls during the next @seconds seconds.
UPDATE webhooks
SET try_at = now() + make_interval(secs => @seconds)
WHERE id IN (SELECT w.id FROM webhooks AS w WHERE w.waiting <> '{}' AND w.try_at <= now() FOR UPDATE SKIP LOCKED)
RETURNING id, url, private, salt, waiting[1]::text AS body, (waiting[1]::json ->> 'id')::text AS call;

-- name: WebhookTaken :exec
-- Removes the call that a receiver has accepted, if it is still the first waiting call of the
-- webhook.
UPDATE webhooks
SET answers = (@answer::text || answers)[:5],
    waiting = waiting[2:],
    since = now(),
    try_at = now()
WHERE id = @id
  AND waiting[1] = @body::text;

-- name: WebhookBackOff :exec
-- Delays the next attempt by as long as the webhook has already waited, at least a second and at
-- most @most.
UPDATE webhooks
SET answers = (@answer::text || answers)[:5],
    try_at = now() + least(greatest(now() - since, interval '1 second'), make_interval(secs => @most))
WHERE id = @id;
