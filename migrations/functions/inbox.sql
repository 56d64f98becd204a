-- The inbox: see 00007_inbox.sql. Two advisory locks: footfall.inbox is held shared by whoever
-- writes visits, from before they look which table is open, and for moments by whoever closes that;
-- footfall.inbox_turns by those who close a table or empty some, so that none gets a turn while it
-- is emptied.

-- Writes visits of an app to the table that is open. What was decided about them holds as long as
-- the app tells days and visitors apart as it did.
CREATE FUNCTION put_in_inbox(app integer, tz text, visitor text, ipv6_prefix smallint, uris text[], pages integer[],
                             days integer[], new_pages integer[], ips inet[], ids text[],
                             tag_sets text[] DEFAULT NULL, tag_places smallint[] DEFAULT NULL) RETURNS void
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
    PERFORM require_day_near(max(d.day), 0) FROM unnest(days) AS d (day);
    INSERT INTO inbox (slot, turn, app_id, visits, tz, visitor, ipv6_prefix, uris, pages, days, new_pages, ips, ids,
                       tag_sets, tag_places)
    SELECT t.slot, t.turn, app, cardinality(put_in_inbox.pages), put_in_inbox.tz, put_in_inbox.visitor, put_in_inbox.ipv6_prefix,
           put_in_inbox.uris, put_in_inbox.pages, put_in_inbox.days, put_in_inbox.new_pages, put_in_inbox.ips, put_in_inbox.ids,
           put_in_inbox.tag_sets, put_in_inbox.tag_places
    FROM inbox_turns AS t
    WHERE t.closed_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no table of the inbox takes visits' USING ERRCODE = '55000';
    END IF;
END
$$;

COMMENT ON FUNCTION put_in_inbox(integer, text, text, smallint, text[], integer[], integer[], integer[], inet[], text[], text[], smallint[]) IS 'Writes visits of an app to the inbox; the arrays are one table, but uris and tag_sets. Fails with SQLSTATE FF008 where the app does not count so any more, and with FF003 where a day has come nowhere yet.';

-- Whoever writes is waited for, and whoever comes to write waits for that: it gives up soon. The
-- next table is one that is empty; or else one that is read to its end, and could not be emptied;
-- or else one with visits that nobody has counted yet. Rows say of which turn they are.
CREATE FUNCTION turn_inbox() RETURNS bigint
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    written inbox_turns;
    another record;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('footfall.inbox_turns'));
    PERFORM pg_advisory_xact_lock(hashtext('footfall.inbox'));
    SELECT * INTO STRICT written FROM inbox_turns AS t WHERE t.closed_at IS NULL;
    SELECT s.slot, EXISTS (SELECT FROM inbox_turns AS t WHERE t.slot = s.slot) AS is_used
    INTO STRICT another
    FROM generate_series(0, 3) AS s (slot)
    WHERE s.slot <> written.slot
    ORDER BY EXISTS (SELECT FROM inbox_apps AS a JOIN inbox_turns AS t ON t.turn = a.turn WHERE a.waiting > 0 AND t.slot = s.slot),
             is_used,
             (s.slot - written.slot + 4) % 4
    LIMIT 1;
    -- One without visits is closed, too, where its table has those of turns before and could be
    -- emptied.
    IF NOT EXISTS (SELECT FROM inbox AS i WHERE i.slot = written.slot AND i.turn = written.turn)
       AND (another.is_used OR NOT EXISTS (SELECT FROM inbox_turns AS t WHERE t.slot = written.slot AND t.turn <> written.turn)) THEN
        RETURN 0;
    END IF;
    INSERT INTO inbox_apps (turn, app_id, accepted)
    SELECT written.turn, i.app_id, sum(i.visits)
    FROM inbox AS i
    WHERE i.slot = written.slot
      AND i.turn = written.turn
    GROUP BY i.app_id;
    UPDATE inbox_turns AS t
    SET closed_at = clock_timestamp(),
        accepted  = (SELECT coalesce(sum(a.accepted), 0) FROM inbox_apps AS a WHERE a.turn = t.turn)
    WHERE t.turn = written.turn;
    INSERT INTO inbox_turns (turn, slot, opened_at, accepted_before)
    SELECT t.turn + 1, another.slot, clock_timestamp(), t.accepted_before + t.accepted
    FROM inbox_turns AS t
    WHERE t.turn = written.turn;
    RETURN written.turn;
END
$$;

COMMENT ON FUNCTION turn_inbox() IS 'Closes the table of the inbox that takes visits, and opens another; the turn that has ended. 0: it has nothing. Fails with SQLSTATE 55P03 where somebody writes for long: try again.';

-- Moves the position in a turn, in the transaction that counts what is between, puts it aside, or
-- passes it by. Rows that are put aside keep their numbers. These only grow in the turn of their
-- app, since all turns are read in order; so they are a position there, too, though rows come as
-- long as it is there. It begins at its first row: its position is never one of an earlier turn of
-- the app. The tables are not analyzed, so the plan must not go by how many rows they have.
CREATE FUNCTION move_inbox(of_turn bigint, from_next bigint, to_next bigint, aside integer[]) RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    of_slot smallint;
BEGIN
    UPDATE inbox_turns AS t
    SET next = to_next
    WHERE t.turn = of_turn
      AND t.next = from_next
      AND t.next < to_next
    RETURNING t.slot INTO of_slot;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the position in the inbox is not where the batch began'
            USING ERRCODE = 'FF004', HINT = 'Go on from where it is.';
    END IF;

    UPDATE inbox_apps AS a
    SET taken = a.taken + p.visits
    FROM (
        SELECT i.app_id, sum(least(to_next - i.number * 65536, i.visits) - greatest(from_next - i.number * 65536, 0)) AS visits
        FROM inbox AS i
        WHERE i.slot = of_slot
          AND i.turn = of_turn
          AND i.number BETWEEN from_next >> 16 AND (to_next - 1) >> 16
          AND i.number * 65536 + i.visits > from_next
        GROUP BY i.app_id
    ) AS p
    WHERE a.turn = of_turn
      AND a.app_id = p.app_id;

    IF cardinality(aside) > 0 THEN
        WITH passed AS (
            SELECT i.*, greatest(from_next - i.number * 65536, 0)::integer AS after, least(to_next - i.number * 65536, i.visits)::integer AS until
            FROM inbox AS i
            WHERE i.slot = of_slot
              AND i.turn = of_turn
              AND i.number BETWEEN from_next >> 16 AND (to_next - 1) >> 16
              AND i.number * 65536 + i.visits > from_next
              AND i.app_id = ANY (aside)
        ), turns AS (
            INSERT INTO inbox_turns AS t (turn, slot, closed_at, try_at, next, accepted)
            SELECT -p.app_id, 4 /* inbox_aside */, now(), now() + interval '1 second', min(p.number) << 16, sum(p.until - p.after)
            FROM passed AS p
            GROUP BY p.app_id
            ORDER BY p.app_id
            ON CONFLICT (turn) DO UPDATE SET accepted = t.accepted + excluded.accepted
            RETURNING t.turn
        ), put AS (
            INSERT INTO inbox (slot, turn, number, received_at, app_id, visits, ipv6_prefix, tz, visitor, uris, pages, days, new_pages, ips, ids,
                               tag_sets, tag_places)
            SELECT 4 /* inbox_aside */, t.turn, p.number, p.received_at, p.app_id, p.until - p.after, p.ipv6_prefix, p.tz, p.visitor, p.uris,
                   p.pages[p.after + 1:p.until], p.days[p.after + 1:p.until], p.new_pages[p.after + 1:p.until],
                   p.ips[p.after + 1:p.until], p.ids[p.after + 1:p.until], p.tag_sets, p.tag_places[p.after + 1:p.until]
            FROM turns AS t
            JOIN passed AS p ON p.app_id = -t.turn
            RETURNING turn, app_id, visits
        )
        INSERT INTO inbox_apps AS a (turn, app_id, accepted)
        SELECT p.turn, p.app_id, sum(p.visits)
        FROM put AS p
        GROUP BY p.turn, p.app_id
        ON CONFLICT (turn, app_id) DO UPDATE SET accepted = a.accepted + excluded.accepted;
    END IF;

    IF of_turn < 0 THEN
        DELETE FROM inbox AS i
        WHERE i.slot = of_slot
          AND i.turn = of_turn
          AND i.number BETWEEN from_next >> 16 AND to_next >> 16
          AND i.number * 65536 + i.visits <= to_next;
        DELETE FROM inbox_turns AS t
        WHERE t.turn = of_turn
          AND NOT EXISTS (SELECT FROM inbox_apps AS a WHERE a.turn = t.turn AND a.waiting > 0);
    END IF;
END
$$;

COMMENT ON FUNCTION move_inbox(bigint, bigint, bigint, integer[]) IS 'Moves the position in a closed turn of the inbox from one place to another, and puts what some apps have between aside. Fails with SQLSTATE FF004 when it stands elsewhere.';

-- As from a backup that was begun while a table was emptied, or by somebody's hand.
CREATE FUNCTION pass_lost_in_inbox(of_turn bigint) RETURNS bigint
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
DECLARE
    lost bigint;
BEGIN
    -- Under this lock nothing moves, and nothing is put aside there.
    PERFORM FROM inbox_turns AS t WHERE t.turn = of_turn FOR UPDATE;
    SELECT coalesce(sum(a.waiting), 0) INTO lost FROM inbox_apps AS a WHERE a.turn = of_turn;
    UPDATE inbox_apps AS a
    SET taken = a.accepted
    FROM inbox_turns AS t
    WHERE a.turn = of_turn
      AND t.turn = of_turn
      AND a.waiting > 0
      AND NOT EXISTS (SELECT FROM inbox AS i WHERE i.slot = t.slot AND i.turn = of_turn AND i.number * 65536 + i.visits > t.next);
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    DELETE FROM inbox_turns AS t WHERE t.turn = of_turn AND t.turn < 0;
    RETURN lost;
END
$$;

COMMENT ON FUNCTION pass_lost_in_inbox(bigint) IS 'Passes by the visits of a closed turn that wait by what was added up, but of which no rows are left behind its position; how many.';

-- It waits for nobody: a table that somebody reads, as a dump does, stays as it is. So does one
-- that is about to be read: a dump locks all tables soon after it has taken its snapshot. In the
-- snapshot visits still wait that were counted since, so the dump must have their rows. Since when
-- a session has its snapshot may be hidden from the owner, but not what it is called.
CREATE FUNCTION empty_inbox(beside_younger_than integer) RETURNS integer
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
    FOR read_to_end IN
        SELECT DISTINCT t.slot
        FROM inbox_turns AS t
        WHERE t.turn > 0
          AND NOT EXISTS (
            SELECT
            FROM inbox_turns AS u
            WHERE u.slot = t.slot
              AND (u.closed_at IS NULL OR EXISTS (SELECT FROM inbox_apps AS a WHERE a.turn = u.turn AND a.waiting > 0)))
          AND NOT EXISTS (
              SELECT
              FROM inbox_turns AS u
              JOIN inbox_apps AS a                    ON a.turn = u.turn
              JOIN pg_catalog.pg_stat_activity AS s   ON age(s.backend_xmin) >= age(a.xmin) -- it does not see that a was counted
              WHERE u.slot = t.slot
                AND s.datname = current_database()
                AND s.pid <> pg_backend_pid()
                AND CASE WHEN s.xact_start IS NOT NULL THEN s.xact_start > clock_timestamp() - make_interval(secs => beside_younger_than)
                         ELSE s.application_name = 'pg_dump' AND beside_younger_than > 0 END
                AND s.pid NOT IN (SELECT v.pid FROM pg_catalog.pg_stat_progress_vacuum AS v))
    LOOP
        BEGIN
            EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE NOWAIT', table_of('inbox_' || read_to_end));
            EXECUTE format('TRUNCATE %s', table_of('inbox_' || read_to_end));
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

COMMENT ON FUNCTION empty_inbox(integer) IS 'Empties the tables of the inbox that were read to their end, if nobody uses them, and no transaction younger than so many seconds has a snapshot in which they were not; how many.';

-- What closed turns have is added up already; of the rows only those of the open one are looked at,
-- of which there are few: instances close it.
CREATE FUNCTION inbox_behind(app integer) RETURNS bigint
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
DECLARE
    written inbox_turns;
BEGIN
    SELECT * INTO STRICT written FROM inbox_turns AS t WHERE t.closed_at IS NULL;
    RETURN (SELECT coalesce(sum(a.waiting), 0) FROM inbox_apps AS a WHERE a.app_id = app AND a.waiting > 0)
         + (SELECT coalesce(sum(i.visits), 0) FROM inbox AS i WHERE i.slot = written.slot AND i.turn = written.turn AND i.app_id = app);
END
$$;

COMMENT ON FUNCTION inbox_behind(integer) IS 'How many accepted visits of an app are not counted yet.';

CREATE FUNCTION require_inbox_past(app integer, day integer) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF EXISTS (
        SELECT
        FROM inbox_turns AS t
        JOIN inbox AS i ON i.slot = t.slot AND i.turn = t.turn AND i.app_id = app AND i.number * 65536 + i.visits > t.next
        WHERE EXISTS (SELECT FROM unnest(i.days) AS d (day) WHERE d.day < require_inbox_past.day)
    ) THEN
        RAISE EXCEPTION 'visits of app % of days before % wait in the inbox', app, day
            USING ERRCODE = '55P03', HINT = 'Try again when they are counted.';
    END IF;
END
$$;

COMMENT ON FUNCTION require_inbox_past(integer, integer) IS 'Fails with SQLSTATE 55P03 where visits of an app wait in the inbox that are of days before one.';

REVOKE ALL ON FUNCTION turn_inbox(), empty_inbox(integer), move_inbox(bigint, bigint, bigint, integer[]), pass_lost_in_inbox(bigint), require_inbox_past(integer, integer) FROM PUBLIC;
