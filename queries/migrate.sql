-- Migrations, partitions, the session: what must be there before anything is counted.

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

-- name: SessionDurable :exec
-- Lets COMMIT wait for the disk in this session. The other values of the setting do so, too, and stay.
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') = 'off';

-- name: ServerWrites :one
-- Whether this server takes writes: a standby does not.
SELECT (NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off')::boolean AS writes;
