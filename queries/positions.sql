-- Positions: how far sources have been counted.

-- name: PositionOpen :one
-- Where a position stands, the content that it was made for, and the first day of which the app
-- took visits then; made at the beginning of its source if it was not there. Whoever moves it at
-- this moment is waited for.
INSERT INTO positions AS p (app_id, source, part, content, from_day)
VALUES (@app_id, @source, @part, @content, greatest(
    first_told_day(@app_id),
    (SELECT min(k.day_id) FROM day_keys AS k WHERE EXISTS (SELECT FROM apps AS a WHERE a.id = @app_id AND a.visitor = 'daily')),
    0
))
ON CONFLICT (app_id, source, part) DO UPDATE
    SET used_at = now()
RETURNING next, content, from_day;

-- name: PositionGet :one
-- Where a position stands; no row if there is none.
SELECT next
FROM positions
WHERE app_id = @app_id
  AND source = @source
  AND part = @part;

-- name: PositionMove :exec
-- Moves a position in the transaction of the batch that counts from one place up to another. Fails
-- with SQLSTATE FF004 when it stands elsewhere.
SELECT move_position(@app_id, @source, @part, @from_next, @to_next);

-- name: QueuePositionOpen :one
-- Where a part of a queue is to be read from, for whoever begins to read it: from the first message
-- that the queue has, if nobody has before.
INSERT INTO positions AS p (app_id, source, part, next)
VALUES (@app_id, @source, @part, @first)
ON CONFLICT (app_id, source, part) DO UPDATE
    SET used_at = now()
RETURNING next;

-- name: QueuesList :many
-- How far the queues of an app were counted, with how many refused messages of each part are kept.
SELECT
    p.source,
    p.part,
    p.next,
    p.used_at,
    (SELECT count(*)
     FROM refused AS r
     WHERE (r.app_id, r.source, r.part) = (p.app_id, p.source, p.part)) AS refused
FROM positions AS p
WHERE p.app_id = @app_id
  AND p.content IS NULL
  AND p.source <> 'logs'
ORDER BY p.source, length(p.part), p.part;

-- name: MessagesRefuse :exec
-- Keeps messages of a part of a queue that could not be counted, in the transaction that moves its
-- position past them, and lets go of those beyond the last ones.
SELECT refuse_messages(@app_id, @source, @part, @positions::bigint[], @reasons::text[], @beginnings::text[]);

-- name: RefusedForget :one
-- Forgets refused messages of some days ago, so many at most; returns how many.
SELECT forget_refused(@most)::bigint AS forgotten;

-- name: QueuesHold :exec
-- Waits for the batches of an app's queues, and keeps later ones waiting, in the order in which
-- they move positions. Before RefusedDelete: a batch lets go of refused messages of one part after
-- the other, and each might have what the other waits for.
SELECT next
FROM positions
WHERE app_id = @app_id
  AND content IS NULL
  AND source <> 'logs'
ORDER BY source COLLATE "C", part COLLATE "C"
FOR UPDATE;

-- name: RefusedDelete :exec
-- Deletes the refused messages of an app.
DELETE FROM refused
WHERE app_id = @app_id;

-- name: CallsForget :one
-- Forgets calls that were last sent more than so many days ago, so many at most; returns how many.
SELECT forget_calls(@days, @most)::bigint AS forgotten;

-- name: VisitorsReadAnew :exec
-- Makes running instances read the visitors anew, many of whom a process of its own has counted.
SELECT read_anew();
