-- Snapshots of the database: taking one for reading, and finding the holders of old ones.

-- name: SnapshotGate :exec
-- Waits for a transaction that drops a day of visits, and blocks later drops until this transaction
-- ends. SnapshotGate and SnapshotHold must run before the statement that takes the snapshot:
-- otherwise a day might be dropped that the snapshot shows as kept. This is a table lock, because a
-- query for an advisory lock would take the snapshot.
LOCK TABLE closed_days IN ROW SHARE MODE;

-- name: SnapshotHold :exec
-- Prevents all sessions from dropping partitions of visits until the transaction ends.
LOCK TABLE visits IN ACCESS SHARE MODE;

-- name: SnapshotHolders :many
-- The holders of old snapshots, which keep PostgreSQL from removing row versions of this database,
-- oldest first: sessions except vacuums, prepared transactions, and replication slots. Returns each
-- holder's name, how to end it, its oldest transaction id, and when it started (for a session, its
-- transaction). The start is 1970 if it is unavailable: for slots, and for sessions of other roles.
-- A superuser or a member of pg_read_all_stats sees the start of all sessions.
SELECT h.holder::text                              AS holder,
       h.ending::text                              AS ending,
       h.keeps::text                               AS keeps,
       coalesce(h.since, 'epoch')::timestamptz     AS since
FROM (
    SELECT format('%s of role %s, process %s', coalesce(nullif(a.application_name, ''), 'a session without a name'), a.usename, a.pid) AS holder,
           format('SELECT pg_terminate_backend(%s)', a.pid)    AS ending,
           concat(a.backend_xid, '/', a.backend_xmin)          AS keeps,
           greatest(age(a.backend_xid), age(a.backend_xmin))   AS age,
           a.xact_start                                        AS since
    FROM pg_catalog.pg_stat_activity AS a
    WHERE coalesce(a.datname, current_database()) = current_database() -- null: a standby's connection, which affects all databases
      AND a.pid <> pg_backend_pid()
      AND a.pid NOT IN (SELECT v.pid FROM pg_catalog.pg_stat_progress_vacuum AS v)
    UNION ALL
    SELECT format('prepared transaction %L of role %s', x.gid, x.owner), format('ROLLBACK PREPARED %L', x.gid),
           x.transaction::text, age(x.transaction), x.prepared
    FROM pg_catalog.pg_prepared_xacts AS x
    WHERE x.database = current_database()
    UNION ALL
    SELECT format('replication slot %s', s.slot_name), format('SELECT pg_drop_replication_slot(%L)', s.slot_name),
           s.xmin::text, age(s.xmin), NULL
    FROM pg_catalog.pg_replication_slots AS s
) AS h
WHERE h.age IS NOT NULL
ORDER BY h.age DESC;
