-- Visitors that another process counts are in no filter of the instances that run: they would take
-- each of them for new once, and write that batch twice.
CREATE FUNCTION read_anew() RETURNS void
LANGUAGE sql
SECURITY DEFINER
SET search_path = footfall, pg_temp
BEGIN ATOMIC
    UPDATE epochs SET value = value + 1 WHERE name = 'imports';
END;

COMMENT ON FUNCTION read_anew() IS 'Makes running instances forget what they remember, and read the visitors anew.';

REVOKE ALL ON FUNCTION read_anew() FROM PUBLIC;
