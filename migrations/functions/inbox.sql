-- The inbox has visits that are accepted now and counted later: see 00013_inbox.sql. Sessions that write visits take the
-- advisory lock footfall.inbox shared, before they read the settings of the app. Sessions that change these settings take this
-- lock exclusively.

-- Writes visits of an app to the inbox. The caller has already decided the day and the visitor of each visit. These decisions
-- stay valid as long as the app's settings for days and visitors do not change. So this function compares the settings.
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
        RAISE EXCEPTION 'the app was deleted or moved, or its settings for days or visitors were changed'
            USING ERRCODE = 'FF008', HINT = 'Admit the visits again.';
    END IF;
    PERFORM require_day_near(max(d.day), 0) FROM unnest(days) AS d (day);
    INSERT INTO inbox (app_id, visits, tz, visitor, ipv6_prefix, uris, pages, days, new_pages, ips, ids, tag_sets, tag_places)
    VALUES (app, cardinality(put_in_inbox.pages), put_in_inbox.tz, put_in_inbox.visitor, put_in_inbox.ipv6_prefix, put_in_inbox.uris, put_in_inbox.pages,
            put_in_inbox.days, put_in_inbox.new_pages, put_in_inbox.ips, put_in_inbox.ids, put_in_inbox.tag_sets, put_in_inbox.tag_places);
END
$$;

COMMENT ON FUNCTION put_in_inbox(integer, text, text, smallint, text[], integer[], integer[], integer[], inet[], text[], text[], smallint[]) IS 'Writes visits of an app to the inbox. In all arrays except uris and tag_sets, the values at one index belong to one visit. Fails with SQLSTATE FF008 if the settings of the app have changed, and with FF003 if a day has not started in any time zone.';

-- Takes visits out of the inbox, in the transaction that counts them. Another session that takes the same visits waits here,
-- and then fails because the rows have changed. No tables are joined, so that the plan does not depend on estimated numbers of
-- rows.
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
        RAISE EXCEPTION 'visits in the inbox have changed since the batch read them'
            USING ERRCODE = 'FF004', HINT = 'Read them again.';
    END IF;
END
$$;

COMMENT ON FUNCTION take_from_inbox(bigint[], integer[], integer[]) IS 'Takes visits out of the inbox, in the transaction that counts them. The values at one index of the arrays belong to one row, in order of number. froms: how many visits of the row were taken before; untils: how many are taken after this call, which are all visits of the row, except perhaps for the last row. Fails with SQLSTATE FF004 unless all of these visits are there.';

-- All rows up to the row number after are counted and deleted. So this query need not skip the deleted rows. While an old
-- snapshot exists, skipping deleted rows takes as long as reading the same number of waiting rows.
CREATE FUNCTION inbox_behind(app integer, after bigint DEFAULT 0) RETURNS bigint
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
SET enable_seqscan = off
AS $$
BEGIN
    RETURN (SELECT coalesce(sum(i.visits - i.counted), 0) FROM inbox AS i WHERE i.app_id = app AND i.number > after);
END
$$;

COMMENT ON FUNCTION inbox_behind(integer, bigint) IS 'Number of visits of an app that wait in the inbox, in rows after the row number after.';

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
        RAISE EXCEPTION 'the inbox has visits of app % for days before %', app, day
            USING ERRCODE = '55P03', HINT = 'Try again after they are counted.';
    END IF;
END
$$;

COMMENT ON FUNCTION require_inbox_past(integer, integer) IS 'Fails with SQLSTATE 55P03 if the inbox has visits of an app for days before this one.';

REVOKE ALL ON FUNCTION take_from_inbox(bigint[], integer[], integer[]), require_inbox_past(integer, integer) FROM PUBLIC;
