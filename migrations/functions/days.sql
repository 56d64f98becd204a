CREATE FUNCTION day_date(day integer) RETURNS date
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT make_date(day / 10000, day / 100 % 100, day % 100)
$$;

COMMENT ON FUNCTION day_date(integer) IS 'A day like 20190629 as a date.';

CREATE FUNCTION today(tz text) RETURNS integer
LANGUAGE sql STABLE STRICT
AS $$
    SELECT to_char(now() AT TIME ZONE tz, 'YYYYMMDD')::integer
$$;

COMMENT ON FUNCTION today(text) IS 'The day that it is in a time zone, like 20190629.';

-- A day begins first in UTC+14. A minute more is for instances, which know this clock about as
-- exactly as a message is fast.
CREATE FUNCTION latest_day(ahead integer DEFAULT 0) RETURNS integer
LANGUAGE sql STABLE STRICT
AS $$
    SELECT to_char(now() AT TIME ZONE 'UTC' + interval '14 hours 1 minute' + ahead * interval '1 day', 'YYYYMMDD')::integer
$$;

COMMENT ON FUNCTION latest_day(integer) IS 'The latest day that it is anywhere, like 20190629, or so many days after it: no visit is of a later one.';

CREATE FUNCTION require_day_near(day integer, ahead integer) RETURNS integer
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF day > latest_day(ahead) THEN
        RAISE EXCEPTION 'day % is too far ahead of this server''s clock', day
            USING ERRCODE = 'FF003', HINT = 'Measure the clock that says so against this server''s.';
    END IF;
    RETURN day;
END
$$;

COMMENT ON FUNCTION require_day_near(integer, integer) IS 'Returns the day, or fails with SQLSTATE FF003 if it comes more than so many days after the latest day that it is anywhere.';

-- A day begins there last of all, so that nobody's clock is behind it.
CREATE FUNCTION days_ago(n integer) RETURNS integer
LANGUAGE sql STABLE STRICT
AS $$
    SELECT to_char((now() AT TIME ZONE 'UTC' - interval '12 hours')::date - n, 'YYYYMMDD')::integer
$$;

COMMENT ON FUNCTION days_ago(integer) IS 'The day so many days ago, like 20190629, in the last time zone in which a day begins.';

CREATE FUNCTION days_earlier(day integer, n integer) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT to_char(day_date(day) - n, 'YYYYMMDD')::integer
$$;

COMMENT ON FUNCTION days_earlier(integer, integer) IS 'The day so many days before a day like 20190629.';
