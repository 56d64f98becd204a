-- Drops the partition of one day if no app keeps visits of that day. The table days shows which apps have visits on the day,
-- so rows of visits are not searched.
--
-- The partition is found by the day in its definition, not by its name, because any table can have that name.
--
-- No batch can count while this function waits for a lock on visits, so it gives up after 0.1 seconds. It waits up to a
-- second for running batches of late visits (hold_days), because only other late visits have to wait in the meantime.
-- Therefore an import that always has a batch running cannot block this function.
--
-- `verify` and exports take many snapshots in turn, and lock closed_days for each (SnapshotGate). So this function locks
-- closed_days first, and waits up to 3 seconds for the end of the current snapshot. The next snapshot waits for this
-- function.
CREATE FUNCTION drop_visits_day(day integer) RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    partition regclass;
BEGIN
    PERFORM make_date(day / 10000, day / 100 % 100, day % 100); -- fails for an invalid date
    IF NOT EXISTS (SELECT FROM closed_days AS c WHERE c.day_id = day) THEN
        RAISE EXCEPTION 'day % is not closed', day USING ERRCODE = '22023';
    END IF;
    IF day >= to_char(now() AT TIME ZONE 'UTC' - interval '1 day', 'YYYYMMDD')::integer THEN
        RAISE EXCEPTION 'an instance with a slow clock may still count visits on day %', day USING ERRCODE = '22023';
    END IF;
    PERFORM set_config('lock_timeout', '3s', true);
    LOCK TABLE closed_days IN EXCLUSIVE MODE;
    PERFORM set_config('lock_timeout', '1s', true);
    PERFORM hold_days(); -- so that no app starts to count for the day
    PERFORM set_config('lock_timeout', '100ms', true);
    IF EXISTS (
        SELECT
        FROM pages AS s
        JOIN days AS d             ON d.page_id = s.id AND d.day_id = day
        JOIN apps AS a             ON a.id = s.app_id AND a.deleted_at IS NULL
        LEFT JOIN visits_kept AS k ON k.app_id = a.id
        WHERE s.site_id IS NULL
          AND day >= coalesce(k.from_day, 0)
    ) THEN
        RETURN false; -- an app keeps visits of the day, perhaps new ones: the caller continues with other days
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('footfall.make_visits_day'));
    SELECT p.partition INTO partition FROM visits_partitions() AS p WHERE p.day = drop_visits_day.day;
    IF partition IS NULL THEN
        RETURN false;
    END IF;
    IF table_of('visits') <> 'visits'::regclass THEN
        PERFORM cell.drop_visits_day(day);
        RETURN true;
    END IF;
    EXECUTE format('ALTER TABLE visits DETACH PARTITION %s', partition);
    EXECUTE format('DROP TABLE %s', partition);
    RETURN true;
END
$$;

COMMENT ON FUNCTION drop_visits_day(integer) IS 'Drops the partition of visits for a closed day like 20190629. Returns false if there is no partition, or if an app keeps visits of the day. Fails with SQLSTATE 55P03 while the table is in use: try again.';

REVOKE ALL ON FUNCTION drop_visits_day(integer) FROM PUBLIC;

-- No snapshot can read a dropped partition. An older snapshot still shows the partition in the catalog, but
-- pg_relation_filenode looks at the current state and finds no table.
CREATE FUNCTION last_dropped_day() RETURNS integer
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT coalesce(max(substring(pg_get_expr(c.relpartbound, 0) FROM '[0-9]+')::integer), -1)
        FROM pg_inherits AS i
        JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = table_of('visits')
          AND pg_relation_filenode(i.inhrelid) IS NULL);
END
$$;

COMMENT ON FUNCTION last_dropped_day() IS 'The last day whose visits were dropped since the snapshot was taken, for a transaction that has locked visits. -1: none.';
