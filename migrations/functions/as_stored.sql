-- What counts may write a page as https://example.com/home: only visit.ParseTarget knows all that
-- such a text may mean. SQL takes what the tables have, and says so instead of finding nothing.
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

COMMENT ON FUNCTION as_stored(text) IS 'A target that somebody has typed for a function of the schema report; an error, if it is not written as it is stored.';
