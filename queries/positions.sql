-- Positions: how far sources have been counted.

-- name: PositionOpen :one
-- Where the position of a call stands, and the content that it was made for; made at the beginning
-- of the call if it was not there. Whoever moves it at this moment is waited for.
INSERT INTO positions AS p (app_id, source, part, content, uncounted)
VALUES (@app_id, @source, @part, @content, '')
ON CONFLICT (app_id, source, part) DO UPDATE
    SET used_at = now()
RETURNING next, content;

-- name: PositionUncounted :one
-- Which items of a call before its position were not counted: a 1 for each of them, a 0 for each of
-- the others.
SELECT coalesce(uncounted::text, '')::text AS uncounted
FROM positions
WHERE app_id = @app_id
  AND source = @source
  AND part = @part;

-- name: PositionGet :one
-- Where a position stands; no row if there is none.
SELECT next
FROM positions
WHERE app_id = @app_id
  AND source = @source
  AND part = @part;

-- name: PositionMove :exec
-- Moves a position in the transaction of the batch that counts from one place up to another; of a
-- call, with a 0 or a 1 for each item between them, as PositionUncounted returns them. Fails with
-- SQLSTATE FF004 when it stands elsewhere.
SELECT move_position(@app_id, @source, @part, @from_next, @to_next, @uncounted);

-- name: QueuePositionOpen :one
-- Where a part of a queue is to be read from, for whoever begins to read it: from the first message
-- that the queue has, if nobody has before.
INSERT INTO positions AS p (app_id, source, part, next)
VALUES (@app_id, @source, @part, @first)
ON CONFLICT (app_id, source, part) DO UPDATE
    SET used_at = now()
RETURNING next;

-- name: MessagesRefuse :exec
-- Keeps messages of a part of a queue that could not be counted, in the transaction that moves its
-- position past them, and lets go of those beyond the last ones.
SELECT refuse_messages(@app_id, @source, @part, @positions::bigint[], @reasons::text[], @beginnings::text[]);

-- name: RefusedForget :one
-- Forgets refused messages of some days ago, so many at most; returns how many.
SELECT forget_refused(@most)::bigint AS forgotten;

-- name: CallsForget :one
-- Forgets calls that were last sent more than so many days ago, so many at most; returns how many.
SELECT forget_calls(@days, @most)::bigint AS forgotten;

-- name: VisitorsReadAnew :exec
-- Makes running instances read the visitors anew, many of whom a process of its own has counted.
SELECT read_anew();

-- name: LinesCount :exec
-- Records lines of access logs as counted, in the transaction of the batch that counts them. Fails with
-- SQLSTATE FF004 if lines of these hours were counted or forgotten since the import decided.
SELECT count_lines(@app_id, @server, @hours::integer[], @expected::bigint[], @latest::timestamptz[], @hashes::bytea[]);
