-- Keys of days: half of what turns the visitors of daily apps.

-- name: DayKeyMake :exec
-- Makes the key of a day, unless another instance has. Fails with SQLSTATE FF003 where the day is
-- later than the one after the latest that it is anywhere.
INSERT INTO day_keys (day_id, key)
VALUES (day_must_be_near(@day, 1), @key)
ON CONFLICT DO NOTHING;

-- name: DayKeyGet :one
-- The key of a day; no row before it is made, and after it was forgotten.
SELECT key
FROM day_keys
WHERE day_id = @day;

-- name: DayKeysList :many
-- The keys of all days that still have one.
SELECT day_id, key
FROM day_keys
ORDER BY day_id;

-- name: DayKeysForget :exec
-- Forgets the keys of days before one, but none that may still be needed: no time zone is a whole
-- day behind UTC.
DELETE FROM day_keys
WHERE day_id < least(@before::integer, to_char(now() AT TIME ZONE 'UTC' - interval '1 day', 'YYYYMMDD')::integer);
