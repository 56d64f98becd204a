-- Empties the table of batches whose turn is over. Its last ids were written when the turn of the other table began, so one
-- minute later nobody looks them up any more. It is not emptied during the last minute before its own next turn: an id that was
-- abandoned in the meantime is in both tables, and a batch that arrives late must find the id in either turn. So each id is
-- kept for at least one minute, and for at most seven if nothing else, such as a dump, locks the table.
CREATE FUNCTION empty_batches() RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
DECLARE
    turn    bigint   := batches_clock() / 180;
    resting regclass := table_of('batches_' || (turn + 1) % 2);
BEGIN
    -- Checks the size instead of querying the table. A query would hold a lock on the table until the end of the transaction,
    -- so two instances that call this function at the same moment would block each other.
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

COMMENT ON FUNCTION empty_batches() IS 'Empties the table of batches whose turn has been over for a minute or two, if nobody uses it. Returns whether it did.';

REVOKE ALL ON FUNCTION empty_batches() FROM PUBLIC;
