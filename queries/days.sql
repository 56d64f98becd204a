-- Days of visits, for commands, the daily task and the status.

-- name: DaysUnclosed :many
-- The given days that are not closed.
SELECT asked.day::integer AS day
FROM (SELECT unnest(@days::integer[]) AS day) AS asked
WHERE NOT EXISTS (SELECT FROM closed_days AS c WHERE c.day_id = asked.day)
ORDER BY asked.day;

-- name: RetentionPauseSet :one
-- Pauses the deletion of an app's old visits (retention) for @hours hours, or ends the pause (0).
-- @run identifies the pause, because several runs may pause the deletion at once. Returns the first
-- day for which the app accepts visits.
SELECT pause_retention(@app::integer, @run::bigint, @hours::integer)::integer AS first_day;

-- name: VisitsDays :many
-- The days in a range for which visits has a partition.
SELECT p.day::integer AS day
FROM visits_partitions() AS p
WHERE p.day BETWEEN @first_day::integer AND @last_day::integer
ORDER BY p.day;
