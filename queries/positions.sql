-- Positions: how far sources have been counted.

-- name: PositionOpen :one
-- Where a position stands, the content that it was made for, and the first day of which the app took
-- visits then; made at the beginning of its source if it was not there. Whoever moves it at this
-- moment is waited for.
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

-- name: CallsForget :one
-- Forgets calls that were last sent more than so many days ago, so many at most; returns how many.
SELECT forget_calls(@days, @most)::bigint AS forgotten;

-- name: VisitorsReadAnew :exec
-- Makes running instances read the visitors anew, many of whom a process of its own has counted.
SELECT read_anew();
