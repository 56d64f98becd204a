-- Deletes the keys of the days before one, but none that may still be needed: no time zone is a
-- whole day behind UTC.
--
-- A row that DELETE takes stays readable in its page until something else needs the room, which
-- takes weeks where a day brings one row. So the table is written anew with the rows that stay, and
-- the old file goes at the commit. The first lock keeps out others who do the same, and nobody
-- else; the second is given up soon, since who waits for a key waits behind it.
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

COMMENT ON FUNCTION forget_day_keys(integer) IS 'Deletes the keys of days before one that are over everywhere, and leaves nothing of them in the table''s file; false if there are none. Fails with SQLSTATE 55P03 where somebody holds the table: try again.';

REVOKE ALL ON FUNCTION forget_day_keys(integer) FROM PUBLIC;
