-- Logs: which files are imported, and whose lines are whose.

-- name: LogsTryLock :one
-- Keeps the logs of an app for this transaction, so that two who import at once never claim the
-- same lines. False: somebody else has them now.
SELECT pg_try_advisory_xact_lock(hashtext('footfall.logs'), @app_id::integer)::boolean AS locked;

-- name: LogsList :many
-- The logs of an app, each with how far it was counted, in the order in which they were begun.
SELECT l.id, l.claimed, l.begun_at, l.used_at, l.named, l.hash, l.file, l.rules, l.skips, p.next
FROM logs AS l
JOIN positions AS p
    ON p.app_id = l.app_id
    AND p.source = 'logs'
    AND p.part = l.id::text
WHERE l.app_id = @app_id
ORDER BY l.id;

-- name: LogMake :one
-- Makes a log, of which nothing was counted, and its position; returns its id.
WITH made AS (
    INSERT INTO logs (app_id, claimed, named, hash, file, rules, skips)
    VALUES (@app_id, 0, @named, @hash, @file, @rules, '{}')
    RETURNING id, app_id
), placed AS (
    INSERT INTO positions (app_id, source, part)
    SELECT app_id, 'logs', id::text
    FROM made
)
SELECT id
FROM made;

-- name: LogClaim :exec
-- Says how much of a log is its own, what of that was claimed by others before, what it is known by
-- now, and which file has it.
UPDATE logs
SET claimed = @claimed,
    skips   = @skips,
    named   = @named,
    hash    = @hash,
    file    = @file,
    used_at = now()
WHERE id = @id;

-- name: LogMarksMake :exec
-- Marks lines of a log; those that are marked already stay.
INSERT INTO log_marks (log_id, place, lines)
SELECT @log_id,
       unnest(@places::bigint[]),
       unnest(@lines::bigint[])
ON CONFLICT DO NOTHING;

-- name: LogMarksList :many
-- The marks of all logs of an app.
SELECT m.log_id, m.place, m.lines
FROM log_marks AS m
JOIN logs AS l ON l.id = m.log_id
WHERE l.app_id = @app_id
ORDER BY m.log_id, m.place;
