-- The inbox: see 00013_inbox.sql. The advisory lock footfall.inbox is held shared by whoever writes
-- visits, from before they look how the app counts, and exclusively by who changes that.

-- Writes visits of an app to the inbox. What was decided about them holds as long as the app tells
-- days and visitors apart as it did.
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
          AND a.cell IS NULL
          AND (a.tz, a.visitor, a.ipv6_prefix) = (put_in_inbox.tz, put_in_inbox.visitor, put_in_inbox.ipv6_prefix)
    ) THEN
        RAISE EXCEPTION 'the app is gone, or tells days or visitors apart in another way now'
            USING ERRCODE = 'FF008', HINT = 'Admit the visits again.';
    END IF;
    PERFORM require_day_near(max(d.day), 0) FROM unnest(days) AS d (day);
    INSERT INTO inbox (app_id, visits, tz, visitor, ipv6_prefix, uris, pages, days, new_pages, ips, ids, tag_sets, tag_places)
    VALUES (app, cardinality(put_in_inbox.pages), put_in_inbox.tz, put_in_inbox.visitor, put_in_inbox.ipv6_prefix, put_in_inbox.uris, put_in_inbox.pages,
            put_in_inbox.days, put_in_inbox.new_pages, put_in_inbox.ips, put_in_inbox.ids, put_in_inbox.tag_sets, put_in_inbox.tag_places);
END
$$;

COMMENT ON FUNCTION put_in_inbox(integer, text, text, smallint, text[], integer[], integer[], integer[], inet[], text[], text[], smallint[]) IS 'Writes visits of an app to the inbox; the arrays are one table, but uris and tag_sets. Fails with SQLSTATE FF008 where the app does not count so any more, and with FF003 where a day has come nowhere yet.';

-- Takes visits out, in the transaction that counts them. Whoever else takes the same ones waits here
-- for that, and then does not find them as they were. The plan must not go by how many rows there
-- seemed to be, so nothing is joined.
CREATE FUNCTION take_from_inbox(numbers bigint[], froms integer[], untils integer[]) RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    rows      integer := cardinality(numbers);
    whole     integer;
    as_read   boolean;
BEGIN
    WITH gone AS (
        DELETE FROM inbox AS i
        WHERE i.number = ANY (numbers)
          AND NOT (i.number = numbers[rows] AND i.visits > untils[rows])
        RETURNING i.number, i.counted, i.visits
    )
    SELECT count(*), coalesce(array_agg(g.counted ORDER BY g.number) = froms[:count(*)] AND array_agg(g.visits ORDER BY g.number) = untils[:count(*)], true)
    INTO whole, as_read
    FROM gone AS g;
    IF whole = rows - 1 THEN
        UPDATE inbox AS i
        SET counted = untils[rows]
        WHERE i.number = numbers[rows]
          AND i.counted = froms[rows]
          AND untils[rows] > froms[rows];
        as_read := as_read AND FOUND;
    END IF;
    IF whole < rows - 1 OR NOT as_read THEN
        RAISE EXCEPTION 'visits of the inbox are not there as the batch has read them'
            USING ERRCODE = 'FF004', HINT = 'Read them anew.';
    END IF;
END
$$;

COMMENT ON FUNCTION take_from_inbox(bigint[], integer[], integer[]) IS 'Takes visits out of the inbox, in the transaction that counts them: of each row those from one place to another, which is its end but in the last row. The arrays are one table, in order of the numbers. Fails with SQLSTATE FF004 unless all of them are there.';

-- after: up to this number all is known to be counted. Beside an old snapshot rows that are gone take
-- as long to pass as those that wait.
CREATE FUNCTION inbox_behind(app integer, after bigint DEFAULT 0) RETURNS bigint
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
SET enable_seqscan = off
AS $$
BEGIN
    RETURN (SELECT coalesce(sum(i.visits - i.counted), 0) FROM inbox AS i WHERE i.app_id = app AND i.number > after);
END
$$;

COMMENT ON FUNCTION inbox_behind(integer, bigint) IS 'How many accepted visits of an app are not counted yet, but for those of rows up to a number.';

CREATE FUNCTION require_inbox_past(app integer, day integer) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF EXISTS (
        SELECT
        FROM inbox AS i
        WHERE i.app_id = app
          AND EXISTS (SELECT FROM unnest(i.days[i.counted + 1:]) AS d (day) WHERE d.day < require_inbox_past.day)
    ) THEN
        RAISE EXCEPTION 'visits of app % of days before % wait in the inbox', app, day
            USING ERRCODE = '55P03', HINT = 'Try again when they are counted.';
    END IF;
END
$$;

COMMENT ON FUNCTION require_inbox_past(integer, integer) IS 'Fails with SQLSTATE 55P03 where visits of an app wait in the inbox that are of days before one.';

REVOKE ALL ON FUNCTION take_from_inbox(bigint[], integer[], integer[]), require_inbox_past(integer, integer) FROM PUBLIC;
