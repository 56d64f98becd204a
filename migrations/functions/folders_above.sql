CREATE FUNCTION folders_above(folder text) RETURNS SETOF text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT left(folder, g.place)
    FROM generate_series(1, length(folder)) AS g (place)
    WHERE substr(folder, g.place, 1) = '/'
$$;

COMMENT ON FUNCTION folders_above(text) IS 'A folder like /docs/de/, and those in which it is: /, /docs/, /docs/de/.';
