-- Migrations, partitions, the session: what must be there before anything is counted.

-- name: MigrateLock :exec
-- Waits until this session alone may change the schema. The session's end lets go.
SELECT pg_advisory_lock(hashtext('footfall.migrate'));

-- name: SchemaSeen :one
-- Whether the database has the table of versions, and whether this role may read it. Asking needs no rights at all.
SELECT count(*) > 0 AS there,
       coalesce(bool_or(has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')), false)::boolean AS readable,
       current_user::text AS role
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'footfall'
  AND c.relname = 'goose_db_version';

-- name: RolesGrant :one
-- Makes the roles for serving and reading where that is allowed, and grants them what is theirs; returns those that are missing.
SELECT grant_roles()::text[] AS missing;

-- name: VisitsDayMake :one
-- Makes the partition of visits for a day; false if it was there.
SELECT make_visits_day(@day)::boolean AS made;

-- name: VisitsDayDrop :one
-- Drops the partition of visits for a day; false if there is none. Fails (FaultBusy) where it would have to wait.
SELECT drop_visits_day(@day)::boolean AS dropped;

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
