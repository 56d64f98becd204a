-- Migrations, partitions, the session: what must be there before anything is counted.

-- name: MigrateLock :exec
-- Waits until this session alone may change the schema. The session's end lets go.
SELECT pg_advisory_lock(hashtext('footfall.migrate'));

-- name: LocksGiveUp :exec
-- Lets each statement of this session fail (FaultBusy) that waits for a lock for longer than that,
-- like 100ms.
SELECT set_config('lock_timeout', @after::text, false);

-- name: WorkBegin :one
-- Whether this session alone does a work now, which it holds until WorkEnd or the session's end,
-- however long it is idle meanwhile; waits for nobody.
SELECT pg_try_advisory_lock(hashtext(@work::text))::boolean AS mine
WHERE set_config('idle_session_timeout', '0', false) IS NOT NULL;

-- name: WorkEnd :exec
-- Lets others do a work.
SELECT pg_advisory_unlock(hashtext(@work::text));

-- name: SchemaSeen :one
-- Whether the database has the table of versions, and whether the role of this session may read it;
-- whether there is the role that is granted this, and whether that of the session is a member.
-- Asking needs no rights at all.
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
-- Makes the schema, before the steps, because goose keeps its own table in it.
CREATE SCHEMA IF NOT EXISTS footfall;

-- name: SchemaFiles :many
-- The files that made this database, with their hashes: a row for each step that was ever applied,
-- and one for all functions and views, as long as they are there.
SELECT name, hash
FROM schema_files;

-- name: StepNote :exec
-- Notes the text of a step that is being applied.
INSERT INTO schema_files (name, hash)
VALUES (@name, @hash)
ON CONFLICT (name) DO UPDATE
    SET hash = excluded.hash;

-- name: FunctionsBegin :exec
-- Lets the transaction make functions in any order.
SELECT set_config('check_function_bodies', 'off', true);

-- name: FunctionsDrop :exec
-- Drops what the files of functions/ and report/ made. Fails (FaultBusy) while a report runs on one
-- of the views, and where somebody has built on one of them.
SELECT drop_functions();

-- name: FunctionsNote :exec
-- Notes that this transaction has made all functions and views, from files with this hash.
SELECT note_functions(@hash);

-- name: CommentsOutdated :many
-- The elements of the arrays, from 0, whose table or column has another comment. The arrays are one table; a column '' means the
-- table itself.
SELECT (c.place - 1)::integer AS place
FROM (SELECT generate_subscripts(@tables::text[], 1) AS place, unnest(@tables::text[]) AS of_table,
             unnest(@columns::text[]) AS of_column, unnest(@texts::text[]) AS comment) AS c
LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = to_regclass(c.of_table) AND a.attname = c.of_column
WHERE pg_catalog.col_description(to_regclass(c.of_table), coalesce(a.attnum, 0)) IS DISTINCT FROM c.comment
ORDER BY c.place;

-- name: CommentsWait :exec
-- Lets a transaction wait for a lock for longer than it takes until an autovacuum gives way.
SELECT set_config('lock_timeout', '2s', true);

-- name: RolesGrant :one
-- Makes the roles for serving and reading where that is allowed, and grants them what is theirs;
-- returns those that are missing.
SELECT grant_roles()::text[] AS missing;

-- name: VisitsDayMake :one
-- Makes the partition of visits for a day; false if it was there.
SELECT make_visits_day(@day)::boolean AS made;

-- name: VisitsDaysAnnounce :exec
-- Tells all sessions of the partitions that were made before: some of them may not know.
SELECT announce_visits_days();

-- name: VisitsDaysMissing :many
-- Those of some days that have no partition, in order.
SELECT day::integer
FROM (SELECT unnest(@days::integer[]) AS day) AS asked
WHERE to_regclass('visits_' || day) IS NULL
ORDER BY day;

-- name: SessionSet :exec
-- Sets the settings of this session with these names to these values, and lets COMMIT wait for the
-- disk, and for that of a synchronous standby: neither off, local nor remote_write do. A value that
-- is as it should be is set, too: what a session has set itself no reload of the server changes.
SELECT set_config(name, value, false)
FROM (SELECT unnest(@names::text[]) AS name, unnest(@values::text[]) AS value) AS s
UNION ALL
SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false);

-- name: SessionCommit :exec
-- Commits something that is in no table: this returns when it is on disk, and on that of a
-- synchronous standby, with all that was committed before. On a standby it does nothing.
SELECT pg_logical_emit_message(true, 'footfall', '')
WHERE NOT pg_is_in_recovery();

-- name: SessionProcess :one
-- The process of the server that this session has.
SELECT pg_backend_pid()::bigint AS pid;

-- name: EraseBegin :exec
-- Lets the statements of this transaction run as long as they need, but lets nobody who has
-- vanished hold a lock.
SELECT set_config('statement_timeout', '0', true),
       set_config('idle_in_transaction_session_timeout', '10s', true),
       set_config('tcp_keepalives_idle', '5', true),
       set_config('tcp_keepalives_interval', '2', true),
       set_config('tcp_keepalives_count', '3', true);
