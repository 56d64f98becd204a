-- Two words. The first is the epoch of erasures, whose xmin shows when a restored dump wrote its
-- row anew. The second changes where visitors may have come in that an instance has not seen: it is
-- the epoch of imports, and what tells this database from a restored or another one: a copy of the
-- files needs a start of the server; a restored dump makes the tables anew.
--
-- A view, and no function: a batch compares it in a statement of its own, without a call.
CREATE VIEW bases AS
SELECT (SELECT concat_ws('/', e.value, e.xmin) FROM epochs AS e WHERE e.name = 'erasures')
       || ' '
       || concat_ws('/', (SELECT e.value FROM epochs AS e WHERE e.name = 'imports'),
                         (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database()),
                         to_regclass('visitors')::oid,
                         extract(epoch FROM pg_postmaster_start_time())) AS basis;

COMMENT ON VIEW   bases       IS 'The one basis that holds at this moment.';
COMMENT ON COLUMN bases.basis IS 'What an instance''s memory of the tables rests on: as long as this stays the same, what it remembers holds. The second word stays where rows only went.';

-- Instances of 0.1.0 ask by this function, and call the next one for each batch.
CREATE FUNCTION basis() RETURNS text
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
BEGIN
    RETURN (SELECT b.basis FROM bases AS b);
END
$$;

COMMENT ON FUNCTION basis() IS 'The basis that holds at this moment.';

CREATE FUNCTION require_basis(expected text) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF expected <> '' AND basis() IS DISTINCT FROM expected THEN
        RAISE EXCEPTION 'what was remembered of the tables no longer holds'
            USING ERRCODE = 'FF001', HINT = 'Forget it, and send the batch again.';
    END IF;
END
$$;

COMMENT ON FUNCTION require_basis(text) IS 'Fails with SQLSTATE FF001 when the basis is another one than expected, unless that is empty.';
