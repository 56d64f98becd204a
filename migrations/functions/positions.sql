-- Moves a position (how far a source was counted) if it is still where the batch started. Another session that reads the same
-- source waits here for this batch to end, and then fails because the position has moved. No position moves back: every item
-- before it was counted or refused.
CREATE FUNCTION move_position(app integer, source text, part text, from_next bigint, to_next bigint, uncounted text DEFAULT '') RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    UPDATE positions AS p
    SET next = to_next,
        uncounted = p.uncounted || move_position.uncounted::bit varying
    WHERE p.app_id = app
      AND p.source = move_position.source
      AND p.part = move_position.part
      AND p.next = from_next
      AND p.next <= to_next;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the position has changed since the batch began'
            USING ERRCODE = 'FF004', HINT = 'Continue from the current position.';
    END IF;
END
$$;

COMMENT ON FUNCTION move_position(integer, text, text, bigint, bigint, text) IS 'Moves a position from from_next to to_next. For a call, uncounted has a bit for each item between them, as in positions.uncounted. Fails with SQLSTATE FF004 if the position is elsewhere.';

-- Deletes positions of some calls that were last sent more than this many days ago. Calls of the last day always stay. Skips a
-- call that is being processed.
CREATE FUNCTION forget_calls(days integer, most integer) RETURNS bigint
LANGUAGE sql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    WITH old AS (
        SELECT p.app_id, p.source, p.part
        FROM positions AS p
        WHERE p.content IS NOT NULL
          AND p.used_at < now() - make_interval(days => greatest(forget_calls.days, 1))
        ORDER BY p.used_at
        LIMIT most
        FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM positions AS p
        USING old
        WHERE (p.app_id, p.source, p.part) = (old.app_id, old.source, old.part)
        RETURNING p.app_id
    )
    SELECT count(*) FROM gone
$$;

COMMENT ON FUNCTION forget_calls(integer, integer) IS 'Deletes at most this many positions of calls that were last sent more than this many days ago, and returns their number.';

REVOKE ALL ON FUNCTION forget_calls(integer, integer) FROM PUBLIC;
