CREATE FUNCTION here_lasts() RETURNS interval
LANGUAGE sql IMMUTABLE
RETURN interval '5 minutes';

COMMENT ON FUNCTION here_lasts() IS 'How long after a visit a visitor counts as here now.';
