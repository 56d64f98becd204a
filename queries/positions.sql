-- Positions: how far sources of visits (calls, logs, queues) have been counted.

-- name: PositionOpen :one
-- The position of a call, and the hash of the content with which the position was created. If the call has no position yet,
-- creates one that points to the call's first item. Waits for a transaction that is moving the position.
INSERT INTO positions AS p (app_id, source, part, content, uncounted)
VALUES (@app_id, @source, @part, @content, '')
ON CONFLICT (app_id, source, part) DO UPDATE
    SET used_at = now()
RETURNING next, content;

-- name: PositionUncounted :one
-- One digit for each item before the position of a call: 1 if the item was not counted, 0 if it was.
SELECT coalesce(uncounted::text, '')::text AS uncounted
FROM positions
WHERE app_id = @app_id
  AND source = @source
  AND part = @part;

-- name: PositionGet :one
-- A position. No row if it does not exist.
SELECT next
FROM positions
WHERE app_id = @app_id
  AND source = @source
  AND part = @part;

-- name: PositionMove :exec
-- Moves a position in the transaction of the batch that counts the items up to the new position. For a
-- call, uncounted has a 0 or a 1 for each item, as PositionUncounted returns them. Fails with SQLSTATE
-- FF004 if the position is not at @from_next.
SELECT move_position(@app_id, @source, @part, @from_next, @to_next, @uncounted);

-- name: QueuePositionOpen :one
-- The position from which a part of a queue is read. It is @first if the part has never been read.
INSERT INTO positions AS p (app_id, source, part, next)
VALUES (@app_id, @source, @part, @first)
ON CONFLICT (app_id, source, part) DO UPDATE
    SET used_at = now()
RETURNING next;

-- name: MessagesRefuse :exec
-- Stores messages that could not be counted, in the transaction that moves the position of their part
-- of a queue past them. Keeps only the last 1,000 refused messages of the part.
SELECT refuse_messages(@app_id, @source, @part, @positions::bigint[], @reasons::text[], @beginnings::text[]);

-- name: RefusedForget :one
-- Deletes at most @most messages that were refused more than 7 days ago. Returns their number.
SELECT forget_refused(@most)::bigint AS forgotten;

-- name: CallsForget :one
-- Deletes at most @most positions of calls that were last sent more than @days days ago. Returns their
-- number.
SELECT forget_calls(@days, @most)::bigint AS forgotten;

-- name: VisitorsReload :exec
-- Makes running instances read the visitors again, because a separate process has counted many visits.
SELECT read_anew();

-- name: LinesCount :exec
-- Records lines of access logs as counted, in the transaction of the batch that counts them. Fails with
-- SQLSTATE FF004 if lines of these hours were counted or forgotten after the import decided which lines
-- to count.
SELECT count_lines(@app_id, @server, @hours::integer[], @expected::bigint[], @latest::timestamptz[], @hashes::bytea[]);
