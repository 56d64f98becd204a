-- Creates the partition of one day. A service that owns no tables creates and drops partitions through this function and
-- drop_visits_day(), which run as the functions' owner. Their search_path is fixed, with the session's temporary tables last.
-- So no name in the functions can resolve to an object of the caller.
--
-- CREATE TABLE and ATTACH are used, because CREATE TABLE … PARTITION OF locks the parent against inserts, and ATTACH does not.
-- If several instances call this function at the same time, one of them creates the partition.
CREATE FUNCTION make_visits_day(day integer) RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
DECLARE
    partition text := 'visits_' || day;
BEGIN
    PERFORM make_date(day / 10000, day / 100 % 100, day % 100); -- fails for an invalid date
    PERFORM require_day_near(day, 8);
    IF to_regclass(partition) IS NOT NULL THEN
        RETURN false;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('footfall.make_visits_day'));
    -- Another instance may have created the partition while this session waited for the lock. This query reads the catalog
    -- directly: to_regclass() would repeat cached data of the session, which waiting for an advisory lock does not refresh.
    IF EXISTS (SELECT FROM pg_class WHERE relnamespace = 'footfall'::regnamespace AND relname = partition) THEN
        RETURN false;
    END IF;
    IF table_of('visits') <> 'visits'::regclass THEN
        PERFORM cell.make_visits_day(day);
        RETURN true;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE visits INCLUDING ALL)', partition);
    EXECUTE format('COMMENT ON TABLE %I IS %L', partition, 'The visits of the day ' || day || ': a partition of visits.');
    EXECUTE format('ALTER TABLE visits ATTACH PARTITION %I FOR VALUES IN (%s)', partition, day);
    RETURN true;
END
$$;

COMMENT ON FUNCTION make_visits_day(integer) IS 'Makes the partition of visits for a day like 20190629. Returns false if it exists. Fails with SQLSTATE FF003 more than eight days ahead.';

-- When visits changes, PostgreSQL notifies all sessions. But a session that is just reading the list of partitions may miss the
-- change. It gets the notice, and then keeps the old list that it had started to read. Until the next notice, this session
-- would accept no visits of the new day, and see none. This function sends another notice by setting the statistics target of a
-- column to its present value, which changes nothing else.
CREATE FUNCTION read_partitions_anew() RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    EXECUTE format('ALTER TABLE ONLY %s ALTER day_id SET STATISTICS -1', table_of('visits'));
END
$$;

COMMENT ON FUNCTION read_partitions_anew() IS 'Makes all sessions read the partitions of visits again: this one from the next statement on, the others when it commits.';

-- A session that was reading the list of partitions when a partition was created holds a lock on visits until its transaction
-- ends. So this function waits for the transactions that hold such a lock, but only for a second. Longer transactions, like
-- reports and dumps, have read the list long before.
CREATE FUNCTION announce_visits_days() RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
DECLARE
    users text[] := ARRAY(
        SELECT l.virtualtransaction
        FROM pg_locks AS l
        WHERE l.relation = table_of('visits')
          AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
          AND l.granted
          AND l.pid <> pg_backend_pid());
    until timestamptz := clock_timestamp() + interval '1 second';
BEGIN
    WHILE clock_timestamp() < until
          AND EXISTS (SELECT FROM pg_locks AS l WHERE l.locktype = 'virtualxid' AND l.virtualxid = ANY (users)) LOOP
        PERFORM pg_sleep(0.001);
    END LOOP;
    PERFORM read_partitions_anew();
END
$$;

COMMENT ON FUNCTION announce_visits_days() IS 'Notifies all sessions of new partitions, once transactions that use visits have ended, or after a second.';

REVOKE ALL ON FUNCTION make_visits_day(integer), read_partitions_anew(), announce_visits_days() FROM PUBLIC;
