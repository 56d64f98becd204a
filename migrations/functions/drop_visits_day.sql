-- Drops the partition of one day, if no app keeps its visits. What an app counted on a day is in
-- the days of its sites, so that no row of visits has to be looked for.
--
-- The partition is known by the day that it holds and not by its name, which anybody may give to a
-- table of their own. The locks of tables keep everybody from counting while they are waited for: it
-- gives up soon. For late visits it waits longer, since nobody but others of them waits behind it:
-- so an import that always has a batch under way cannot keep it out. `verify` reads all the time, one snapshot after the other, for each of which it locks
-- closed_days, too: it is kept from the next one there, where nobody else waits, before visits are
-- asked for.
CREATE FUNCTION drop_visits_day(day integer) RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    partition regclass;
BEGIN
    PERFORM make_date(day / 10000, day / 100 % 100, day % 100); -- refuses what is no day
    IF NOT EXISTS (SELECT FROM closed_days AS c WHERE c.day_id = day) THEN
        RAISE EXCEPTION 'day % is not closed', day USING ERRCODE = '22023';
    END IF;
    IF day >= to_char(now() AT TIME ZONE 'UTC' - interval '1 day', 'YYYYMMDD')::integer THEN
        RAISE EXCEPTION 'day % may still be counted by a slow clock', day USING ERRCODE = '22023';
    END IF;
    PERFORM set_config('lock_timeout', '3s', true);
    LOCK TABLE closed_days IN EXCLUSIVE MODE;
    PERFORM set_config('lock_timeout', '1s', true);
    PERFORM hold_days(); -- so that no app begins to count for the day
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
        RETURN false; -- perhaps since a moment ago: whoever asks goes on with another day
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

COMMENT ON FUNCTION drop_visits_day(integer) IS 'Drops the partition of visits for a day like 20190629 that is closed; false if there is none, or an app keeps its visits. Fails with SQLSTATE 55P03 where somebody is using it: try again.';

REVOKE ALL ON FUNCTION drop_visits_day(integer) FROM PUBLIC;

-- A dropped partition is gone for every snapshot. An older one still has it in the catalog, but
-- pg_relation_filenode, which asks for what is there now, finds no table.
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

COMMENT ON FUNCTION last_dropped_day() IS 'The last day whose visits were dropped since the snapshot was taken, for a transaction that has locked visits; -1: none was.';
