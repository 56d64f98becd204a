-- Keys of days: half of what turns the visitors of daily apps.

-- name: DayKeyMake :exec
-- Makes the key of a day, unless another instance has.
INSERT INTO day_keys (day_id, key)
VALUES (@day, @key)
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
-- Forgets the keys of days before one.
DELETE FROM day_keys
WHERE day_id < @before;
