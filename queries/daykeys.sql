-- Keys of days: half of what turns the visitors of daily apps.

-- name: DayKeyMake :exec
-- Makes the key of a day, unless another instance has. Fails with SQLSTATE FF003 where the day is
-- later than the one after the latest that it is anywhere.
INSERT INTO day_keys (day_id, key)
VALUES (require_day_near(@day, 1), @key)
ON CONFLICT DO NOTHING;

-- name: DayKeyGet :one
-- The key of a day; no row before it is made, and after it was forgotten.
SELECT key
FROM day_keys
WHERE day_id = @day;

-- name: DayKeysFirst :one
-- The first day that still has its key; 0: none has.
SELECT coalesce(min(day_id), 0)::integer AS day
FROM day_keys;

-- name: DayKeysForget :exec
-- Deletes the keys of days before one that are over everywhere, without a trace in the table's
-- file. Fails (FaultBusy) where it would have to wait for long.
SELECT forget_day_keys(@before);
