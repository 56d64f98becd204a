-- Running instances recognize counted visitors by a filter in memory, which does not contain visitors that another process
-- has counted. An instance would take each of these visitors for new once, and then have to write the batch twice.
CREATE FUNCTION read_anew() RETURNS void
LANGUAGE sql
SECURITY DEFINER
SET search_path = footfall, pg_temp
BEGIN ATOMIC
    UPDATE epochs SET value = value + 1 WHERE name = 'imports';
END;

COMMENT ON FUNCTION read_anew() IS 'Makes running instances discard their filters of visitors and read the visitors again.';

REVOKE ALL ON FUNCTION read_anew() FROM PUBLIC;
