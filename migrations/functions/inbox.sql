-- The inbox: see 00007_inbox.sql. Two advisory locks: footfall.inbox is held shared by whoever writes
-- visits, from before they look which table is open, and for moments by whoever closes that;
-- footfall.inbox_turns by those who close a table or empty some, so that none gets a turn while it is
-- emptied.

-- Writes visits of an app to the table that is open. What was decided about them holds as long as the
-- app tells days and visitors apart as it did.
CREATE FUNCTION put_in_inbox(app integer, tz text, visitor text, ipv6_prefix smallint, uris text[], pages integer[],
                             days integer[], new_pages integer[], ips inet[], ids text[]) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtext('footfall.inbox'));
    IF NOT EXISTS (
        SELECT
        FROM apps AS a
        WHERE a.id = app
          AND a.deleted_at IS NULL
          AND (a.tz, a.visitor, a.ipv6_prefix) = (put_in_inbox.tz, put_in_inbox.visitor, put_in_inbox.ipv6_prefix)
    ) THEN
        RAISE EXCEPTION 'the app is gone, or tells days or visitors apart in another way now'
            USING ERRCODE = 'FF008', HINT = 'Admit the visits again.';
    END IF;
    PERFORM day_must_be_near(max(d.day), 0) FROM unnest(days) AS d (day);
    INSERT INTO inbox (slot, turn, app_id, visits, tz, visitor, ipv6_prefix, uris, pages, days, new_pages, ips, ids)
    SELECT t.slot, t.turn, app, cardinality(put_in_inbox.pages), put_in_inbox.tz, put_in_inbox.visitor, put_in_inbox.ipv6_prefix,
           put_in_inbox.uris, put_in_inbox.pages, put_in_inbox.days, put_in_inbox.new_pages, put_in_inbox.ips, put_in_inbox.ids
    FROM inbox_turns AS t
    WHERE t.closed_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no table of the inbox takes visits' USING ERRCODE = '55000';
    END IF;
END
$$;

COMMENT ON FUNCTION put_in_inbox(integer, text, text, smallint, text[], integer[], integer[], integer[], inet[], text[]) IS 'Writes visits of an app to the inbox; the last five arrays are one table. Fails with SQLSTATE FF008 where the app does not count so any more, and with FF003 where a day has come nowhere yet.';

-- Whoever writes is waited for, and whoever comes to write waits for that: it gives up soon.
CREATE FUNCTION turn_inbox() RETURNS bigint
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    written inbox_turns;
    waiting bigint;
    free    smallint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('footfall.inbox_turns'));
    PERFORM pg_advisory_xact_lock(hashtext('footfall.inbox'));
    SELECT * INTO STRICT written FROM inbox_turns AS t WHERE t.closed_at IS NULL;
    SELECT coalesce(sum(i.visits), 0) INTO waiting FROM inbox AS i WHERE i.slot = written.slot AND i.turn = written.turn;
    IF waiting = 0 THEN
        RETURN 0;
    END IF;
    -- One that is empty, or else one that is read to its end, and could not be emptied.
    SELECT s.slot
    INTO free
    FROM generate_series(0, 3) AS s (slot)
    WHERE NOT EXISTS (SELECT FROM inbox_turns AS t WHERE t.slot = s.slot AND NOT t.done)
    ORDER BY (SELECT count(*) FROM inbox_turns AS t WHERE t.slot = s.slot), s.slot
    LIMIT 1;
    IF free IS NULL THEN
        RETURN -1;
    END IF;
    UPDATE inbox_turns AS t
    SET closed_at = clock_timestamp(),
        accepted  = waiting
    WHERE t.turn = written.turn;
    INSERT INTO inbox_turns (turn, slot, opened_at) VALUES (written.turn + 1, free, clock_timestamp());
    RETURN written.turn;
END
$$;

COMMENT ON FUNCTION turn_inbox() IS 'Closes the table of the inbox that takes visits, and opens another; the turn that has ended. 0: it has no visits. -1: none is free, until one is read to its end. Fails with SQLSTATE 55P03 where somebody writes for long: try again.';

-- Moves the position of a turn, in the transaction that counts what is between, or passes it by.
CREATE FUNCTION move_inbox(of_turn bigint, from_next bigint, to_next bigint, more_counted bigint, more_dropped bigint) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    UPDATE inbox_turns AS t
    SET next    = to_next,
        counted = t.counted + more_counted,
        dropped = t.dropped + more_dropped
    WHERE t.turn = of_turn
      AND t.next = from_next
      AND t.next < to_next
      AND t.closed_at IS NOT NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the position in the inbox is not where the batch began'
            USING ERRCODE = 'FF004', HINT = 'Go on from where it is.';
    END IF;
END
$$;

COMMENT ON FUNCTION move_inbox(bigint, bigint, bigint, bigint, bigint) IS 'Moves the position of a closed turn of the inbox from one place to another, with how many visits between are counted, and how many dropped. Fails with SQLSTATE FF004 when it stands elsewhere.';

-- It waits for nobody: a table that somebody reads, as a dump does, stays as it is.
CREATE FUNCTION empty_inbox() RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    read_to_end smallint;
    emptied     integer := 0;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('footfall.inbox_turns')) THEN
        RETURN 0;
    END IF;
    FOR read_to_end IN SELECT t.slot FROM inbox_turns AS t GROUP BY t.slot HAVING bool_and(t.done) LOOP
        BEGIN
            EXECUTE format('LOCK TABLE ONLY inbox_%s IN ACCESS EXCLUSIVE MODE NOWAIT', read_to_end);
            EXECUTE format('TRUNCATE inbox_%s', read_to_end);
            DELETE FROM inbox_turns AS t WHERE t.slot = read_to_end;
            emptied := emptied + 1;
        EXCEPTION
            WHEN lock_not_available THEN
                NULL;
        END;
    END LOOP;
    RETURN emptied;
END
$$;

COMMENT ON FUNCTION empty_inbox() IS 'Empties the tables of the inbox that were read to their end, if nobody uses them; how many.';

-- Turn by turn, so that only the table of each is looked at.
CREATE FUNCTION inbox_behind(app integer) RETURNS bigint
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
DECLARE
    unread inbox_turns;
    behind bigint := 0;
BEGIN
    FOR unread IN SELECT * FROM inbox_turns AS t WHERE NOT t.done LOOP
        behind := behind + (
            SELECT coalesce(sum(i.visits - CASE WHEN i.number = unread.next >> 16 THEN unread.next & 65535 ELSE 0 END), 0)
            FROM inbox AS i
            WHERE i.slot = unread.slot
              AND i.turn = unread.turn
              AND i.number >= unread.next >> 16
              AND i.app_id = app);
    END LOOP;
    RETURN behind;
END
$$;

COMMENT ON FUNCTION inbox_behind(integer) IS 'How many accepted visits of an app are not counted yet.';

CREATE FUNCTION inbox_must_be_past(app integer, day integer) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF EXISTS (
        SELECT
        FROM inbox_turns AS t
        JOIN inbox AS i ON i.slot = t.slot AND i.turn = t.turn AND i.number >= t.next >> 16
        WHERE NOT t.done
          AND i.app_id = app
          AND EXISTS (SELECT FROM unnest(i.days) AS d (day) WHERE d.day < inbox_must_be_past.day)
    ) THEN
        RAISE EXCEPTION 'visits of app % of days before % wait in the inbox', app, day
            USING ERRCODE = '55P03', HINT = 'Try again when they are counted.';
    END IF;
END
$$;

COMMENT ON FUNCTION inbox_must_be_past(integer, integer) IS 'Fails with SQLSTATE 55P03 where visits of an app wait in the inbox that are of days before one.';

REVOKE ALL ON FUNCTION turn_inbox(), empty_inbox(), inbox_must_be_past(integer, integer) FROM PUBLIC;
