-- Closes a day that has ended in every time zone: makes the sketches of its visits (to estimate numbers of visitors), and
-- the lists of top pages of its sites. Returns false if the day was already closed. Once a day is closed, filters and
-- lists of visitors are the only reports that need its rows of visits.
--
-- Late visits of the day have to wait only from hold_days() on. After that, the visits that were written while the
-- sketches were made are added to the sketches. These visits are found by the ids of their transactions (xmin), because
-- these transactions had not ended when the sketches were started.
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
        RAISE EXCEPTION 'day % has not ended in every time zone', day USING ERRCODE = '22023';
    END IF;
    PERFORM FROM epochs WHERE name = 'erasures' FOR UPDATE; -- so that no transaction moves rows between pages while the day is summed up
    INSERT INTO closed_days (day_id) VALUES (day) ON CONFLICT DO NOTHING; -- waits for another session that closes the day
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

COMMENT ON FUNCTION close_day(integer) IS 'Makes the sketches and the lists of top pages of a day, like 20190629, that has ended. Returns false if the day was already closed.';

REVOKE ALL ON FUNCTION close_day(integer) FROM PUBLIC;
