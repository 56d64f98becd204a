-- Snapshots: how one is taken for reading, and who keeps an old one.

-- name: SnapshotGate :exec
-- Waits for whoever drops a day of visits, and keeps others from it until the transaction ends.
-- Both locks come before anything that takes the snapshot: a day might go that it takes for kept.
-- This one is of a table, since asking for an advisory lock would take it.
LOCK TABLE closed_days IN ROW SHARE MODE;

-- name: SnapshotHold :exec
-- Keeps partitions of visits from being taken away until the transaction ends, by whomever.
LOCK TABLE visits IN ACCESS SHARE MODE;

-- name: SnapshotHolders :many
-- Who keeps PostgreSQL from clearing away versions of rows of this database that are of no use to
-- anybody else, the one that keeps most first: sessions, but not those that vacuum, prepared
-- transactions, and replication slots. Of each: what it is called, how it is ended, from which
-- transaction on it keeps all, and since when: for a session since its transaction began. That is
-- 1970 where it is not told: of slots, and of other roles' sessions to whoever is neither a
-- superuser nor a member of pg_read_all_stats.
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
    WHERE coalesce(a.datname, current_database()) = current_database() -- a standby that is asked questions holds for all
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
