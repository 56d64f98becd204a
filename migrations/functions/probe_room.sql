-- Writes a temporary file beside the tables and lets it go again, without anything in the log of
-- transactions. Where the disk is full it fails, however small a row would still fit a page that is
-- there. The rows are more than the memory that they may take: so PostgreSQL writes them out.
CREATE FUNCTION probe_room() RETURNS bigint
LANGUAGE sql VOLATILE
SET work_mem = '64kB'
AS $$
    SELECT count(*) FROM generate_series(1, 20000)
$$;

COMMENT ON FUNCTION probe_room() IS 'Fails where the disk has no room for some hundred kilobytes.';
