-- Batches are written to two tables, which take turns of three minutes. This function empties the table whose turn has ended,
-- between one and two minutes after the end. By then, no instance looks up an id in the table any more. In the third minute,
-- shortly before the table's next turn, the table is not emptied, because it may contain abandoned ids. An abandoned id is in
-- both tables, and a batch that arrives late must find the id in either turn. So each id is kept for at least one minute. It is
-- kept for at most seven minutes if nothing else, such as a dump, locks the table.
CREATE FUNCTION empty_batches() RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
DECLARE
    turn    bigint   := batches_clock() / 180;
    resting regclass := table_of('batches_' || (turn + 1) % 2);
BEGIN
    -- Checks the size instead of querying the table. A query would hold a lock on the table until the end of the transaction.
    -- Then two instances that call this function at the same moment would block each other.
    IF pg_relation_size(resting) = 0 THEN
        RETURN false;
    END IF;
    EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE NOWAIT', resting);
    IF batches_clock() NOT BETWEEN turn * 180 + 60 AND turn * 180 + 120 THEN
        RETURN false;
    END IF;
    EXECUTE format('TRUNCATE %s', resting);
    RETURN true;
EXCEPTION
    WHEN lock_not_available THEN
        RETURN false;
END
$$;

COMMENT ON FUNCTION empty_batches() IS 'Empties the table of batches whose turn ended one to two minutes ago, if no other session uses the table. Returns whether the table was emptied.';

REVOKE ALL ON FUNCTION empty_batches() FROM PUBLIC;
