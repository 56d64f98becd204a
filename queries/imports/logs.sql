-- Logs: which are imported, and by what they are known again.

-- name: LogKeyMake :one
-- The random key of the logs of an app, made where it has none yet.
SELECT make_log_key(@app_id, @fresh)::bytea AS log_key;

-- name: LogsTryLock :one
-- Keeps the logs of an app for this transaction, so that of two who begin the same log at once the
-- second finds it. False: somebody else has them now.
SELECT pg_try_advisory_xact_lock(hashtext('footfall.logs'), @app_id::integer)::boolean AS locked;

-- name: LogsFind :many
-- The logs of an app that may begin with one of some lines, and those of which that is not known.
SELECT *
FROM logs AS l
WHERE l.app_id = @app_id
  AND l.counted IS NOT NULL
  AND (l.beginning = ANY (@beginnings::bigint[]) OR l.beginning IS NULL)
ORDER BY l.id;

-- name: LogsGet :many
-- Some logs, by their ids.
SELECT *
FROM logs AS l
WHERE l.id = ANY (@ids::bigint[])
ORDER BY l.id;

-- name: LogMake :one
-- Makes a log of which nothing is counted, and returns its id. What else is known of it LogSet says;
-- not its first line, since LogsFind reads whatever was there without one in this transaction.
INSERT INTO logs (app_id, claimed, lines, hash, file, rules, counted, beginning)
VALUES (@app_id, 0, 0, @hash, '', '', 0, @beginning)
RETURNING id;

-- name: LogSet :execrows
-- Writes what is known of a log, when somebody has looked at a file that has it, unless it was
-- counted, or looked at, since it was found: 0.
UPDATE logs
SET claimed      = @claimed,
    hash         = @hash,
    counted      = @counted,
    counted_hash = @counted_hash,
    lines        = @lines,
    beginning    = @beginning,
    look         = @look,
    server       = @server,
    file         = @file,
    inode        = @inode,
    state        = @state,
    rules        = @rules,
    told         = @told,
    after        = @after,
    after_lines  = @after_lines,
    last_at      = @last_at,
    tail         = @tail,
    used_at      = now()
WHERE id = @id
  AND counted IS NOT DISTINCT FROM sqlc.narg(was_counted)
  AND look = @was_look;

-- name: LogSamplesOfHours :many
-- The samples of an app's logs in some hours.
SELECT log_id, hour, sample
FROM log_samples
WHERE app_id = @app_id
  AND hour = ANY (@hours::integer[])
ORDER BY log_id, hour;

-- name: LogSamplesOf :many
-- The samples of a log, in some hours; null: in all.
SELECT hour, sample
FROM log_samples
WHERE log_id = @log_id
  AND (sqlc.narg(hours)::integer[] IS NULL OR hour = ANY (sqlc.narg(hours)))
ORDER BY hour;

-- name: LogSamplesSet :exec
-- Writes samples of a log in place of those that it has of their hours. The two arrays are one
-- table.
INSERT INTO log_samples (app_id, log_id, hour, sample)
SELECT @app_id, @log_id, unnest(@hours::integer[]), unnest(@samples::bytea[])
ON CONFLICT (log_id, hour) DO UPDATE
    SET sample = excluded.sample;

-- name: LogSamplesDelete :exec
-- Deletes the samples of a log in some hours.
DELETE FROM log_samples
WHERE log_id = @log_id
  AND hour = ANY (@hours::integer[]);

-- name: OldLogApps :many
-- The names of apps that have logs of 0.1.0.
SELECT a.name
FROM apps AS a
WHERE EXISTS (SELECT FROM logs AS l WHERE l.app_id = a.id AND l.counted IS NULL)
  AND a.deleted_at IS NULL
ORDER BY a.name;

-- name: OldLogsList :many
-- The logs of an app that 0.1.0 had, with how far it has counted each (none where it was deleted).
-- Who counts one by this position is waited for.
SELECT l.id, l.claimed, l.hash, l.lines, l.file, l.rules, p.next
FROM logs AS l
JOIN positions AS p
    ON p.app_id = l.app_id
    AND p.source = 'logs'
    AND p.part = l.id::text
WHERE l.app_id = @app_id
  AND l.counted IS NULL
ORDER BY l.id
FOR UPDATE OF p;

-- name: OldLogLines :many
-- The lines of a log of 0.1.0, so many rows behind a line, in their order.
SELECT line, hour, hashes
FROM log_lines
WHERE log_id = @log_id
  AND line > @behind
ORDER BY line
LIMIT @most;

-- name: OldLogTake :exec
-- Ends what 0.1.0 keeps of a log, in the transaction in which it was written anew: an import of
-- 0.1.0 that still counts it finds no position, and ends.
SELECT take_old_log(@app_id, @id);

-- name: LogDayKeys :many
-- The keys of days, with which lines of daily apps are hashed.
SELECT day_id, key
FROM day_keys;
