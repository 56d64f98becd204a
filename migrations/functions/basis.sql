-- The basis is the version of the table contents that instances cache. It consists of two words. The first word has the epoch
-- of erasures and the xmin of this epoch's row, which changes when the row is restored from a dump.
--
-- The second word changes when the database may have visitors that an instance has not seen. It has the epoch of imports, and
-- three numbers that differ in another or a restored database:
--   - the oid of the database
--   - the oid of the table visitors, which is new in a database that was restored from a dump
--   - the start time of the server, which is started again when its files are replaced by a copy
--
-- This is a view, not a function, so that BatchCheck can compare the basis without a function call.
CREATE VIEW bases AS
SELECT (SELECT concat_ws('/', e.value, e.xmin) FROM epochs AS e WHERE e.name = 'erasures')
       || ' '
       || concat_ws('/', (SELECT e.value FROM epochs AS e WHERE e.name = 'imports'),
                         (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database()),
                         to_regclass('visitors')::oid,
                         extract(epoch FROM pg_postmaster_start_time())) AS basis;

COMMENT ON VIEW   bases       IS 'The current basis, in one row.';
COMMENT ON COLUMN bases.basis IS 'Version of the table contents that instances cache. While it is unchanged, their caches are valid. The second word does not change if rows were only deleted.';

-- Instances of 0.1.0 call basis(), and call require_basis() for each batch. Later instances call require_basis() only if the
-- basis has changed.
CREATE FUNCTION basis() RETURNS text
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
BEGIN
    RETURN (SELECT b.basis FROM bases AS b);
END
$$;

COMMENT ON FUNCTION basis() IS 'The current basis.';

CREATE FUNCTION require_basis(expected text) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF expected <> '' AND basis() IS DISTINCT FROM expected THEN
        RAISE EXCEPTION 'the memory of the tables is outdated'
            USING ERRCODE = 'FF001', HINT = 'Discard it, and send the batch again.';
    END IF;
END
$$;

COMMENT ON FUNCTION require_basis(text) IS 'Fails with SQLSTATE FF001 if the basis differs from the expected one, unless the expected one is empty.';
