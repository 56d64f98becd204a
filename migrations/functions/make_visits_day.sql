-- Makes the partition of one day. A service that owns nothing makes and drops partitions through
-- this function and drop_visits_day(), which run as their owner. Their search_path is fixed, with a
-- session's temporary tables last in it, so that no name in them means anything of the caller's.
-- CREATE TABLE and ATTACH, because CREATE TABLE … PARTITION OF locks the parent against inserts and
-- ATTACH does not. Several instances may call it at once: one makes it.
CREATE FUNCTION make_visits_day(day integer) RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
DECLARE
    partition text := 'visits_' || day;
BEGIN
    PERFORM make_date(day / 10000, day / 100 % 100, day % 100); -- refuses what is no day
    PERFORM day_must_be_near(day, 8);
    IF to_regclass(partition) IS NOT NULL THEN
        RETURN false;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('footfall.make_visits_day'));
    -- Another instance may have made it while this one waited. This asks the catalog itself:
    -- to_regclass() would repeat what the session has cached, since waiting for an advisory lock
    -- does not make it listen to others.
    IF EXISTS (SELECT FROM pg_class WHERE relnamespace = 'footfall'::regnamespace AND relname = partition) THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE visits INCLUDING ALL)', partition);
    EXECUTE format('COMMENT ON TABLE %I IS %L', partition, 'The visits of the day ' || day || ': a partition of visits.');
    EXECUTE format('ALTER TABLE visits ATTACH PARTITION %I FOR VALUES IN (%s)', partition, day);
    RETURN true;
END
$$;

COMMENT ON FUNCTION make_visits_day(integer) IS 'Makes the partition of visits for a day like 20190629; false if it was there. Fails with SQLSTATE FF003 more than eight days ahead.';

REVOKE ALL ON FUNCTION make_visits_day(integer) FROM PUBLIC;
