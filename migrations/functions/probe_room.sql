-- Writes a temporary file next to the tables and deletes it, without writing to the transaction log. It fails if the disk is
-- full, even if a small row would still fit an existing page. The rows exceed the memory limit, so PostgreSQL writes them out.
CREATE FUNCTION probe_room() RETURNS bigint
LANGUAGE sql VOLATILE
SET work_mem = '64kB'
AS $$
    SELECT count(*) FROM generate_series(1, 20000)
$$;

COMMENT ON FUNCTION probe_room() IS 'Fails if the disk has no room for some hundred kilobytes.';
