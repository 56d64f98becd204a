-- The basis is two words. The first is the epoch of erasures, whose xmin changes when the row is restored from a dump. The
-- second changes when visitors may have been written that an instance has not seen. It is the epoch of imports, and a mark that
-- distinguishes this database from a restored or different one: a copy of the files needs a start of the server, and a restored
-- dump creates the tables again.
--
-- This is a view, not a function, so that the statement of a batch can compare it without a call.
CREATE VIEW bases AS
SELECT (SELECT concat_ws('/', e.value, e.xmin) FROM epochs AS e WHERE e.name = 'erasures')
       || ' '
       || concat_ws('/', (SELECT e.value FROM epochs AS e WHERE e.name = 'imports'),
                         (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database()),
                         to_regclass('visitors')::oid,
                         extract(epoch FROM pg_postmaster_start_time())) AS basis;

COMMENT ON VIEW   bases       IS 'The current basis, in one row.';
COMMENT ON COLUMN bases.basis IS 'Basis of an instance''s memory of the tables. As long as it is unchanged, the memory is valid. The second word does not change if rows were only deleted.';

-- Instances of 0.1.0 call this function, and the next one for each batch.
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

COMMENT ON FUNCTION require_basis(text) IS 'Fails with SQLSTATE FF001 if the basis differs from the expected one, unless that is empty.';
