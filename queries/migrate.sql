-- Migrations, partitions, and sessions: everything that must exist before visits are counted.

-- name: MigrateLock :exec
-- Waits until only this session may change the schema. The lock is released when the session ends.
SELECT pg_advisory_lock(hashtext('footfall.migrate'));

-- name: LocksGiveUp :exec
-- Makes each statement of this session fail (FaultBusy) if it waits for a lock for longer than @after, for example 100ms.
SELECT set_config('lock_timeout', @after::text, false);

-- name: WorkBegin :one
-- Tries to get the lock for a kind of work (such as the daily task), without waiting. Returns whether the session got it. The
-- session holds the lock until WorkEnd or until the session ends, however long it is idle.
SELECT pg_try_advisory_lock(hashtext(@work::text))::boolean AS mine
WHERE set_config('idle_session_timeout', '0', false) IS NOT NULL;

-- name: WorkEnd :exec
-- Releases the lock that WorkBegin has taken for a kind of work.
SELECT pg_advisory_unlock(hashtext(@work::text));

-- name: SchemaSeen :one
-- Checks whether the session can read goose's table of versions. The query itself needs no rights. Returns whether:
--   there     the table exists
--   readable  the session's role may read the table
--   granted   the role @granted exists, which may read the table
--   member    the session's role is a member of @granted
SELECT count(*) > 0 AS there,
       EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.rolname = @granted::text) AS granted,
       EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.rolname = @granted::text AND pg_has_role(r.oid, 'USAGE')) AS member,
       coalesce(bool_or(has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')), false)::boolean AS readable,
       current_user::text AS role
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'footfall'
  AND c.relname = 'goose_db_version';

-- name: SchemaMake :exec
-- Creates the schema before the first migration step runs, because goose keeps its own table in this schema.
CREATE SCHEMA IF NOT EXISTS footfall;

-- name: SchemaFiles :many
-- The files that made this database, with their hashes. There is one row for each applied migration step, and one row for all
-- functions and views together, while these exist.
SELECT name, hash
FROM schema_files;

-- name: StepNote :exec
-- Records the hash of a migration step that is being applied.
INSERT INTO schema_files (name, hash)
VALUES (@name, @hash)
ON CONFLICT (name) DO UPDATE
    SET hash = excluded.hash;

-- name: FunctionsBegin :exec
-- Allows the transaction to create functions in any order.
SELECT set_config('check_function_bodies', 'off', true);

-- name: FunctionsDrop :exec
-- Drops everything created by the files of functions/ and report/. Fails (FaultBusy) while a report uses one of the views.
-- Also fails if any other object depends on one of the functions or views.
SELECT drop_functions();

-- name: FunctionsNote :exec
-- Records that this transaction has created all functions and views from files with this hash.
SELECT note_functions(@hash);

-- name: CommentsOutdated :many
-- Compares comments in the database with given texts. The values at one index of the arrays are a table, a column ('': the
-- table itself) and the text. Returns the indexes, from 0, at which the comment differs.
SELECT (c.place - 1)::integer AS place
FROM (SELECT generate_subscripts(@tables::text[], 1) AS place, unnest(@tables::text[]) AS of_table,
             unnest(@columns::text[]) AS of_column, unnest(@texts::text[]) AS comment) AS c
LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = to_regclass(c.of_table) AND a.attname = c.of_column
WHERE pg_catalog.col_description(to_regclass(c.of_table), coalesce(a.attnum, 0)) IS DISTINCT FROM c.comment
ORDER BY c.place;

-- name: CommentsWait :exec
-- Lets this transaction wait for a lock for 2 seconds. This is longer than an autovacuum takes to release its lock for a
-- waiting session.
SELECT set_config('lock_timeout', '2s', true);

-- name: RolesGrant :one
-- Creates the roles footfall_app and footfall_report if the session's role may do this, and grants them their rights. Returns
-- the roles that are missing.
SELECT grant_roles()::text[] AS missing;

-- name: VisitsDayMake :one
-- Creates the partition of visits for a day. Returns false if the partition exists.
SELECT make_visits_day(@day)::boolean AS made;

-- name: VisitsDaysAnnounce :exec
-- Makes every session notice the partitions that already exist.
SELECT announce_visits_days();

-- name: VisitsDaysMissing :many
-- The given days that have no partition, in order.
SELECT day::integer
FROM (SELECT unnest(@days::integer[]) AS day) AS asked
WHERE to_regclass('visits_' || day) IS NULL
ORDER BY day;

-- name: SessionSet :exec
-- Changes settings of this session. Also sets synchronous_commit to on, unless it is remote_apply, so that COMMIT waits for
-- the disk, and for a synchronous standby's disk. Sets values even if they are already correct: a later reload of the
-- configuration then cannot change them.
SELECT set_config(name, value, false)
FROM (SELECT unnest(@names::text[]) AS name, unnest(@values::text[]) AS value) AS s
UNION ALL
SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false);

-- name: SessionCommit :exec
-- Commits a message in the WAL, which changes no table. Returns when this commit and all earlier ones are on disk, also on
-- the disk of the synchronous standby. Does nothing on a standby.
SELECT pg_logical_emit_message(true, 'footfall', '')
WHERE NOT pg_is_in_recovery();

-- name: SessionProcess :one
-- The server process of this session.
SELECT pg_backend_pid()::bigint AS pid;

-- name: EraseBegin :exec
-- Removes the statement timeout of this transaction. Also makes the server detect a vanished client quickly, so that a
-- vanished client's transaction does not keep its locks.
SELECT set_config('statement_timeout', '0', true),
       set_config('idle_in_transaction_session_timeout', '10s', true),
       set_config('tcp_keepalives_idle', '5', true),
       set_config('tcp_keepalives_interval', '2', true),
       set_config('tcp_keepalives_count', '3', true);
