-- The state of the service, also for instances. No query here reads a table of visits or visitors.

-- name: StatusServer :one
-- The server, its database, the standbys that COMMIT waits for, whether it is a standby itself, and
-- whether its memory is in huge pages. Before PostgreSQL 17, the use of huge pages is known only if
-- huge_pages is on or off.
SELECT current_setting('server_version')::text             AS version,
       current_database()::text                           AS database,
       pg_database_size(current_database())::bigint       AS bytes,
       current_setting('synchronous_standby_names')::text AS waits_for,
       coalesce(current_setting('huge_pages_status', true), nullif(current_setting('huge_pages'), 'try'), 'unknown')::text AS huge_pages,
       pg_is_in_recovery()                                AS is_standby;

-- name: CommitsWait :one
-- Whether COMMIT waits for a synchronous standby that does not respond: no such standby is connected,
-- or a session of this role has waited for this number of seconds. Only a superuser or a member of
-- pg_read_all_stats can see which standby is synchronous. For other roles every follower counts,
-- including base backups.
SELECT (NOT pg_is_in_recovery()
        AND current_setting('synchronous_standby_names') <> ''
        AND current_setting('max_wal_senders') <> '0'
        AND (NOT EXISTS (SELECT FROM pg_catalog.pg_stat_replication
                         WHERE coalesce(sync_state IN ('sync', 'quorum'), true))
             OR EXISTS (SELECT FROM pg_catalog.pg_stat_activity
                        WHERE wait_event = 'SyncRep' AND query_start < now() - make_interval(secs => @seconds::double precision))))::boolean AS waits;

-- name: StatusInstances :many
-- The running instances: each holds an epoch of apps while its session lasts. For sessions of another
-- role, name and address are empty and the start is 1970, unless the querying role is a superuser or
-- a member of pg_read_all_stats. The address is also empty for a Unix socket.
SELECT coalesce(max(a.application_name), '')::text   AS name,
       coalesce(host(max(a.client_addr)), '')::text  AS address,
       coalesce(max(a.backend_start), 'epoch')::timestamptz AS since
FROM pg_catalog.pg_locks AS l
JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
WHERE l.locktype = 'advisory'
  AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
  AND l.classid::bigint = hashtext('footfall.apps')::bigint & 4294967295 -- an oid is unsigned, a hash is not
  AND l.objsubid = 2 -- a lock with two keys
GROUP BY l.pid -- an instance that changes to a new epoch holds two locks for a moment
ORDER BY since, l.pid;

-- name: StatusDaily :one
-- The daily task: the last day on which it completed, whether it is running, and the last closed day
-- and when it was closed. Days are 0 if there is none.
SELECT (SELECT value FROM epochs WHERE name = 'retention')::integer                AS done_on,
       EXISTS (
           SELECT
           FROM pg_catalog.pg_locks AS l
           WHERE l.locktype = 'advisory'
             AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
             AND ((l.classid::bigint << 32) | l.objid::bigint) = hashtext('footfall.retain')::bigint
             AND l.objsubid = 1 -- a lock with one key
       )                                                                           AS running,
       coalesce(max(c.day_id), 0)::integer                                         AS closed_day,
       coalesce(max(c.closed_at), 'epoch')::timestamptz                            AS closed_at
FROM closed_days AS c;
