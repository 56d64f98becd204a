-- Migrations and partitions: what must be there before anything is counted.

-- name: MigrateLock :exec
-- Waits until this session alone may change the schema. The session's end lets go.
SELECT pg_advisory_lock(hashtext('footfall.migrate'));

-- name: VisitsDayMake :one
-- Makes the partition of visits for a day; false if it was there.
SELECT make_visits_day(@day)::boolean AS made;

-- name: VisitsDaysMissing :one
-- How many of some days have no partition.
SELECT count(*)
FROM (SELECT unnest(@days::integer[]) AS day) AS asked
WHERE to_regclass('visits_' || day) IS NULL;
