-- Days of visits, as commands, the daily task and the status ask for them.

-- name: DaysUnclosed :many
-- Those of some days that are not closed.
SELECT asked.day::integer AS day
FROM (SELECT unnest(@days::integer[]) AS day) AS asked
WHERE NOT EXISTS (SELECT FROM closed_days AS c WHERE c.day_id = asked.day)
ORDER BY asked.day;

-- name: RetentionPauseSet :one
-- Pauses letting go and forgetting for an app for so many hours, as one run asks for it, or ends
-- what that has asked for (0). Returns the first day of which the app takes visits.
SELECT pause_retention(@app::integer, @run::bigint, @hours::integer)::integer AS first_day;

-- name: VisitsDays :many
-- The days of which visits has rows, from one to another.
SELECT p.day::integer AS day
FROM visits_partitions() AS p
WHERE p.day BETWEEN @first_day::integer AND @last_day::integer
ORDER BY p.day;
