-- The state of the service, for `footfall status` and for instances. No query here reads a table of
-- visits or visitors.

-- name: StatusServer :one
-- The server, its database, the standbys that COMMIT waits for, whether it is a standby itself, and
-- whether its memory is in huge pages. Before PostgreSQL 17, the use of huge pages is unknown if the
-- setting huge_pages is try.
SELECT current_setting('server_version')::text             AS version,
       current_database()::text                           AS database,
       pg_database_size(current_database())::bigint       AS bytes,
       current_setting('synchronous_standby_names')::text AS waits_for,
       coalesce(current_setting('huge_pages_status', true), nullif(current_setting('huge_pages'), 'try'), 'unknown')::text AS huge_pages,
       pg_is_in_recovery()                                AS is_standby;

-- name: CommitsWait :one
-- Whether COMMIT waits for a synchronous standby that does not respond: no synchronous standby is
-- connected, or a session has waited for one for @seconds seconds. A superuser or a member of
-- pg_read_all_stats can see all sessions, and which standbys are synchronous. Other roles see only
-- their own sessions. For them, every replication connection counts as a synchronous standby, even a
-- base backup.
SELECT (NOT pg_is_in_recovery()
        AND current_setting('synchronous_standby_names') <> ''
        AND current_setting('max_wal_senders') <> '0'
        AND (NOT EXISTS (SELECT FROM pg_catalog.pg_stat_replication
                         WHERE coalesce(sync_state IN ('sync', 'quorum'), true))
             OR EXISTS (SELECT FROM pg_catalog.pg_stat_activity
                        WHERE wait_event = 'SyncRep' AND query_start < now() - make_interval(secs => @seconds::double precision))))::boolean AS waits;

-- name: StatusInstances :many
-- The running instances: each holds a lock on an epoch of apps (see apps.sql) while its session
-- lasts. Sessions of another role are shown without name and address, and with the start 1970. A
-- superuser or a member of pg_read_all_stats sees these values, too. The address is also empty for a
-- Unix socket.
SELECT coalesce(max(a.application_name), '')::text   AS name,
       coalesce(host(max(a.client_addr)), '')::text  AS address,
       coalesce(max(a.backend_start), 'epoch')::timestamptz AS since
FROM pg_catalog.pg_locks AS l
JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
WHERE l.locktype = 'advisory'
  AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
  AND l.classid::bigint = hashtext('footfall.apps')::bigint & 4294967295 -- an oid is unsigned, but a hash is signed
  AND l.objsubid = 2 -- 2: a lock with two keys
GROUP BY l.pid -- an instance that changes to a new epoch holds two locks for a moment
ORDER BY since, l.pid;

-- name: StatusDaily :one
-- The daily task: the last day on which it completed, whether it is running, and the last closed day
-- and when that day was closed. Days are 0 if there is none.
SELECT (SELECT value FROM epochs WHERE name = 'retention')::integer                AS done_on,
       EXISTS (
           SELECT
           FROM pg_catalog.pg_locks AS l
           WHERE l.locktype = 'advisory'
             AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
             AND ((l.classid::bigint << 32) | l.objid::bigint) = hashtext('footfall.retain')::bigint
             AND l.objsubid = 1 -- 1: a lock with one key
       )                                                                           AS running,
       coalesce(max(c.day_id), 0)::integer                                         AS closed_day,
       coalesce(max(c.closed_at), 'epoch')::timestamptz                            AS closed_at
FROM closed_days AS c;
