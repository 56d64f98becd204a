-- Empties the table of batches whose turn is over. Its youngest ids were written when the turn of
-- the other began, so from a minute later on nobody asks after them any more. That goes on until a
-- minute before its own next turn: an id that was abandoned meanwhile is in both tables, and must
-- be found by a batch that arrives late, whichever turn it is then. So each id is kept for a minute
-- at least, and for seven at most where nothing keeps the lock from this function, as a dump does.
CREATE FUNCTION empty_batches() RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
DECLARE
    turn    bigint   := batches_clock() / 180;
    resting regclass := table_of('batches_' || (turn + 1) % 2);
BEGIN
    -- Not a query of the table: its lock would stay until the end, and keep out another instance
    -- that asks at the same moment, as that would keep out this one.
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

COMMENT ON FUNCTION empty_batches() IS 'Empties the table of batches whose turn is over, if that was for a minute or two, and if nobody uses it; true if it did.';

REVOKE ALL ON FUNCTION empty_batches() FROM PUBLIC;
