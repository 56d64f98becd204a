-- The filters of running instances do not contain visitors that another process counts: they would take each visitor for new
-- once, and write that batch twice.
CREATE FUNCTION read_anew() RETURNS void
LANGUAGE sql
SECURITY DEFINER
SET search_path = footfall, pg_temp
BEGIN ATOMIC
    UPDATE epochs SET value = value + 1 WHERE name = 'imports';
END;

COMMENT ON FUNCTION read_anew() IS 'Makes running instances forget their memory of visitors and read them again.';

REVOKE ALL ON FUNCTION read_anew() FROM PUBLIC;
