CREATE FUNCTION here_lasts() RETURNS interval
LANGUAGE sql IMMUTABLE
RETURN interval '5 minutes';

COMMENT ON FUNCTION here_lasts() IS 'Time after a visit for which a visitor counts as currently here.';
