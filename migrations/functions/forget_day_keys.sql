-- Deletes the keys of days before the given one. Keys from yesterday (UTC) on are kept, because they may still be
-- needed: no time zone is a whole day behind UTC.
--
-- A deleted row stays readable in its page until its space is reused, which takes weeks at one row a day. So the table
-- is written again with the remaining rows, and the old file is removed at the commit. The first lock blocks only other
-- sessions that run this function. This function waits for the second lock only briefly, because sessions that need a
-- key have to wait behind it.
CREATE FUNCTION forget_day_keys(before integer) RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    from_day integer := least(before, to_char(now() AT TIME ZONE 'UTC' - interval '1 day', 'YYYYMMDD')::integer);
    kept     day_keys[];
BEGIN
    LOCK TABLE day_keys IN SHARE UPDATE EXCLUSIVE MODE;
    IF NOT EXISTS (SELECT FROM day_keys AS k WHERE k.day_id < from_day) THEN
        RETURN false;
    END IF;
    LOCK TABLE day_keys IN ACCESS EXCLUSIVE MODE;
    kept := ARRAY(SELECT k FROM day_keys AS k WHERE k.day_id >= from_day);
    EXECUTE format('TRUNCATE %s', table_of('day_keys'));
    INSERT INTO day_keys (day_id, key)
    SELECT k.day_id, k.key
    FROM unnest(kept) AS k;
    RETURN true;
END
$$;

COMMENT ON FUNCTION forget_day_keys(integer) IS 'Deletes the keys of days before this day that have ended in every time zone, and removes them from the table''s file. Returns false if there are none. Fails with SQLSTATE 55P03 while the table is in use: try again.';

REVOKE ALL ON FUNCTION forget_day_keys(integer) FROM PUBLIC;
