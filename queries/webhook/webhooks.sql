-- Webhook calls that wait to be sent.

-- name: RoundNumbersSee :exec
-- Adds a webhook call for each round number of visitors that was reached since the last check. If
-- there are no webhooks, the function is not called, so that PostgreSQL need not plan its body.
SELECT see_round_numbers()
WHERE EXISTS (SELECT FROM webhooks);

-- name: WebhooksTry :many
-- Returns the first waiting call of each webhook whose next attempt is due. For @seconds seconds,
-- other instances do not get these calls.
UPDATE webhooks
SET try_at = now() + make_interval(secs => @seconds)
WHERE id IN (SELECT w.id FROM webhooks AS w WHERE w.waiting <> '{}' AND w.try_at <= now() FOR UPDATE SKIP LOCKED)
RETURNING id, url, private, salt, waiting[1]::text AS body, (waiting[1]::json ->> 'id')::text AS call;

-- name: WebhookTaken :exec
-- Removes a call that the receiver has accepted, if it is still the first waiting call of the
-- webhook. Stores @answer, a text that describes the result.
UPDATE webhooks
SET answers = (@answer::text || answers)[:5],
    waiting = waiting[2:],
    since = now(),
    try_at = now()
WHERE id = @id
  AND waiting[1] = @body::text;

-- name: WebhookBackOff :exec
-- Delays the next attempt after a failed call. The delay is as long as the call has waited so
-- far, but at least a second and at most @most seconds.
UPDATE webhooks
SET answers = (@answer::text || answers)[:5],
    try_at = now() + least(greatest(now() - since, interval '1 second'), make_interval(secs => @most))
WHERE id = @id;
