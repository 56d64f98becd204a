-- The database's clock.

-- name: ClockRead :one
-- The time by the database's clock at the moment of the call.
SELECT clock_timestamp()::timestamptz AS now;
