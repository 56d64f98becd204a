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

COMMENT ON FUNCTION today(text) IS 'The current day in a time zone, like 20190629.';

-- A day begins first in UTC+14. The additional minute allows for the error of instances' clocks: an instance reads this
-- server's clock by a message, which takes some time.
CREATE FUNCTION latest_day(ahead integer DEFAULT 0) RETURNS integer
LANGUAGE sql STABLE STRICT
AS $$
    SELECT to_char(now() AT TIME ZONE 'UTC' + interval '14 hours 1 minute' + ahead * interval '1 day', 'YYYYMMDD')::integer
$$;

COMMENT ON FUNCTION latest_day(integer) IS 'The current day, like 20190629, in the time zone where days begin first, plus ahead days. With ahead = 0: no visit has a later day.';

CREATE FUNCTION require_day_near(day integer, ahead integer) RETURNS integer
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF day > latest_day(ahead) THEN
        RAISE EXCEPTION 'day % is too far ahead of this server''s clock', day
            USING ERRCODE = 'FF003', HINT = 'Compare the clock of the client with the clock of this server.';
    END IF;
    RETURN day;
END
$$;

COMMENT ON FUNCTION require_day_near(integer, integer) IS 'Returns the day. Fails with SQLSTATE FF003 if it is more than ahead days after the current day in the time zone where days begin first.';

-- Uses the time zone where days begin last, so that no time zone has an earlier day.
CREATE FUNCTION days_ago(n integer) RETURNS integer
LANGUAGE sql STABLE STRICT
AS $$
    SELECT to_char((now() AT TIME ZONE 'UTC' - interval '12 hours')::date - n, 'YYYYMMDD')::integer
$$;

COMMENT ON FUNCTION days_ago(integer) IS 'The day this many days ago, like 20190629, in the time zone where days begin last.';

CREATE FUNCTION days_earlier(day integer, n integer) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT to_char(day_date(day) - n, 'YYYYMMDD')::integer
$$;

COMMENT ON FUNCTION days_earlier(integer, integer) IS 'The day this many days before a day like 20190629.';
