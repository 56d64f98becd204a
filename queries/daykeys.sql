-- Keys of days. In apps with visitor = daily, visitors are hashed with the key of the day.

-- name: DayKeyMake :exec
-- Stores the key of a day, unless another instance has already stored one. Fails with SQLSTATE
-- FF003 if the day is later than tomorrow in every time zone.
INSERT INTO day_keys (day_id, key)
VALUES (require_day_near(@day, 1), @key)
ON CONFLICT DO NOTHING;

-- name: DayKeyGet :one
-- The key of a day. Returns no row before the key is made, or after it was deleted.
SELECT key
FROM day_keys
WHERE day_id = @day;

-- name: DayKeysFirst :one
-- The first day that still has its key, or 0 if no day has one.
SELECT coalesce(min(day_id), 0)::integer AS day
FROM day_keys;

-- name: DayKeysForget :exec
-- Deletes the keys of days that are before @before and have ended in all time zones. Also removes
-- these keys from the table's file. Fails (FaultBusy) if it cannot lock the table within a moment.
SELECT forget_day_keys(@before);
