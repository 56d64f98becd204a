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

-- A day begins there last of all, so that nobody's clock is behind it.
CREATE FUNCTION days_ago(n integer) RETURNS integer
LANGUAGE sql STABLE STRICT
AS $$
    SELECT to_char((now() AT TIME ZONE 'UTC' - interval '12 hours')::date - n, 'YYYYMMDD')::integer
$$;

COMMENT ON FUNCTION days_ago(integer) IS 'The day so many days ago, like 20190629, in the last time zone in which a day begins.';
