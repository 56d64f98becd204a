-- What batches have brought for tag_days: see tag_news.

-- Row by row, and not by a lock on the table: it keeps out no batch, and who has a snapshot, as a
-- dump does, sees either what was taken or what became of it.
CREATE FUNCTION take_tag_news(of_turn integer, most integer)
RETURNS TABLE (pages bigint[], days integer[], verdicts smallint[], ends integer[], tags integer[])
LANGUAGE sql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    DELETE FROM tag_news AS n
    WHERE n.turn = of_turn
      AND n.ctid = ANY (ARRAY(SELECT t.ctid FROM tag_news AS t WHERE t.turn = of_turn LIMIT most))
    RETURNING n.pages, n.days, n.verdicts, n.ends, n.tags
$$;

COMMENT ON FUNCTION take_tag_news(integer, integer) IS 'Takes so many rows at most out of one of the two tables of tag_news; the caller adds them to tag_days in the same transaction.';

-- Batches do not wait for it: they write to the other table, and a late one for a moment. A dump that
-- has begun may still need rows that were taken since; one that begins later does not.
CREATE FUNCTION empty_tag_news() RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
DECLARE
    resting text := 'tag_news_' || (batches_clock() / 10 + 1) % 2;
    taken   boolean;
BEGIN
    IF pg_relation_size(resting) = 0 THEN
        RETURN false;
    END IF;
    EXECUTE format('LOCK TABLE ONLY %I IN ACCESS EXCLUSIVE MODE NOWAIT', resting);
    EXECUTE format('SELECT NOT EXISTS (SELECT FROM %I)', resting) INTO taken;
    taken := taken AND NOT EXISTS (
        SELECT
        FROM pg_catalog.pg_stat_activity AS s
        WHERE s.datname = current_database()
          AND s.application_name = 'pg_dump');
    IF taken THEN
        EXECUTE format('TRUNCATE %I', resting);
    END IF;
    RETURN taken;
EXCEPTION
    WHEN lock_not_available THEN
        RETURN false;
END
$$;

COMMENT ON FUNCTION empty_tag_news() IS 'Empties the table of tag_news whose turn is over, if all of it was taken and nobody uses it; true if it did.';

REVOKE ALL ON FUNCTION take_tag_news(integer, integer), empty_tag_news() FROM PUBLIC;
