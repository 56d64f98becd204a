-- Sums up a day that is over everywhere: sketches of its visits, and the top pages of its sites.
-- False: it was done before. Once it is done, the visits themselves are not needed for any report
-- but those that list them.
--
-- Late visits to the day wait only at the end: what they wrote while the sketches were made is
-- known by its transaction, which is none that was over then.
CREATE FUNCTION close_day(day integer) RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
SET statement_timeout = 0
AS $$
DECLARE
    before xid;
BEGIN
    IF day > to_char(now() AT TIME ZONE 'UTC' - interval '36 hours', 'YYYYMMDD')::integer THEN
        RAISE EXCEPTION 'day % is not over everywhere yet', day USING ERRCODE = '22023';
    END IF;
    PERFORM FROM epochs WHERE name = 'erasures' FOR UPDATE; -- nobody moves rows from page to page while they are summed up
    INSERT INTO closed_days (day_id) VALUES (day) ON CONFLICT DO NOTHING; -- waits for whoever is closing it
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    before := pg_snapshot_xmin(pg_current_snapshot())::xid;
    PERFORM make_sketches(only_day => day);
    PERFORM hold_days();
    PERFORM add_to_sketches(array_agg(v.page_id), array_agg(v.day_id), array_agg(v.ip))
    FROM visits AS v
    WHERE v.day_id = day
      AND age(v.xmin) <= age(before);
    PERFORM make_tops(only_day => day);
    RETURN true;
END
$$;

COMMENT ON FUNCTION close_day(integer) IS 'Makes the sketches and the tops of a day like 20190629 that is over; false if it had them.';

REVOKE ALL ON FUNCTION close_day(integer) FROM PUBLIC;
