-- Fails if the app does not exist, because a mistyped name would look like an app without visitors. Also fails for invalid
-- dates.
CREATE FUNCTION asked_app(app text, from_day integer, to_day integer) RETURNS integer
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
DECLARE
    asked integer := (SELECT a.id FROM apps AS a WHERE a.name = asked_app.app);
BEGIN
    IF asked IS NULL THEN
        RAISE EXCEPTION 'app: there is no app %', app USING ERRCODE = '22023';
    ELSIF from_day > to_day THEN
        RAISE EXCEPTION 'from_day: % is after to_day, %', from_day, to_day USING ERRCODE = '22023';
    END IF;
    PERFORM day_date(nullif(from_day, 0)), day_date(nullif(to_day, 0)); -- fails for an invalid date; from_day 0 means all earlier days
    RETURN asked;
EXCEPTION
    WHEN datetime_field_overflow THEN
        RAISE EXCEPTION 'from_day, to_day: % or % is not a day: write one like 20190629', from_day, to_day USING ERRCODE = '22023';
END
$$;

COMMENT ON FUNCTION asked_app(text, integer, integer) IS 'Id of the app with this name, for a report about a range of days. Fails with SQLSTATE 22023 if the app does not exist or the range is invalid.';

REVOKE ALL ON FUNCTION asked_app(text, integer, integer) FROM PUBLIC;
