-- Callers of the API can write a page as https://example.com/home, which visit.ParseTarget converts. SQL finds targets only
-- as the tables store them. A target with a scheme is an error, because the query would find nothing.
CREATE FUNCTION as_stored(target text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
BEGIN
    IF target ~ '^[A-Za-z][A-Za-z0-9+.-]*://' THEN
        RAISE EXCEPTION 'target: % begins with a scheme: write it as it is stored, like example.com or example.com/home', target USING ERRCODE = '22023';
    END IF;
    RETURN target;
END
$$;

COMMENT ON FUNCTION as_stored(text) IS 'Returns a target that a user passes to a function of the schema report. Fails if the target has a scheme like https://, because targets are stored without one.';
