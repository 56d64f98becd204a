-- Logs: which files are imported, and whose lines are whose.

-- name: LogsTryLock :one
-- Keeps the logs of an app for this transaction, so that two who import at once never claim the
-- same lines. False: somebody else has them now.
SELECT pg_try_advisory_xact_lock(hashtext('footfall.logs'), @app_id::integer)::boolean AS locked;

-- name: LogsList :many
-- The logs of an app, each with how far it was counted, in the order in which they were begun.
SELECT l.id, l.claimed, l.lines, l.begun_at, l.used_at, l.last_hour, l.hash, l.file, l.rules, l.skips, p.next
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
    INSERT INTO logs (app_id, claimed, lines, last_hour, hash, file, rules, skips)
    VALUES (@app_id, 0, 0, 0, @hash, @file, @rules, '{}')
    RETURNING id, app_id
), placed AS (
    INSERT INTO positions (app_id, source, part)
    SELECT app_id, 'logs', id::text
    FROM made
)
SELECT id
FROM made;

-- name: LogClaim :exec
-- Says how much of a log is its own, what of that was claimed by others before, and which file has
-- it.
UPDATE logs
SET claimed   = @claimed,
    lines     = @lines,
    last_hour = @last_hour,
    skips     = @skips,
    hash      = @hash,
    file      = @file,
    used_at   = now()
WHERE id = @id;

-- name: LogLinesMake :exec
-- Keeps the hashes of lines of a log. The three arrays are one table.
INSERT INTO log_lines (app_id, log_id, line, hour, hashes)
SELECT @app_id,
       @log_id,
       unnest(@lines::bigint[]),
       unnest(@hours::integer[]),
       unnest(@hashes::bytea[]);

-- name: LogLinesAppend :execrows
-- Adds lines to a stretch that has so many so far; 0: there is no such stretch.
UPDATE log_lines
SET hashes = hashes || @more
WHERE log_id = @log_id
  AND line = @line
  AND octet_length(hashes) = 8 * @so_far::bigint;

-- name: LogLinesOfHours :many
-- Which of some hours have lines of an app's logs but one, and how many stretches.
SELECT hour, count(*) AS stretches
FROM log_lines
WHERE app_id = @app_id
  AND hour = ANY (@hours::integer[])
  AND log_id <> @but
GROUP BY hour
ORDER BY hour;

-- name: LogLinesInHours :many
-- The lines of an app's logs but one in some hours, in the order of logs and lines.
SELECT log_id, line, hour, hashes
FROM log_lines
WHERE app_id = @app_id
  AND hour = ANY (@hours::integer[])
  AND log_id <> @but
ORDER BY log_id, line;

-- name: LogLinesUpTo :many
-- So many stretches of a log that begin at a line or before it, the last one first.
SELECT line, hashes
FROM log_lines
WHERE log_id = @log_id
  AND line <= @line
ORDER BY line DESC
LIMIT @n;
