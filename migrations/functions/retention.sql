-- Deletes rows that need not be kept. The service has no right to delete: it calls these functions, which run as their owner.
-- Each function checks whether the rows may be deleted.

-- Locks the row of erasures in epochs, and so waits for a command that moves rows between pages. Such a command has read which
-- rows are kept, and must end before more rows may be deleted.
CREATE FUNCTION keep_visits_from(app integer, day integer) RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
BEGIN
    PERFORM FROM epochs WHERE name = 'erasures' FOR UPDATE;
    IF NOT EXISTS (SELECT FROM apps AS a WHERE a.id = app AND a.retain_days > 0 AND day <= days_ago(a.retain_days)) THEN
        RAISE EXCEPTION 'app % keeps its visits of days before %', app, day USING ERRCODE = '22023';
    END IF;
    PERFORM hold_app_days(app);
    PERFORM require_retention(app);
    PERFORM require_inbox_past(app, day);
    INSERT INTO visits_kept AS k (app_id, from_day)
    VALUES (app, day)
    ON CONFLICT (app_id) DO UPDATE
        SET from_day = greatest(k.from_day, excluded.from_day);
END
$$;

COMMENT ON FUNCTION keep_visits_from(integer, integer) IS 'Allows the deletion of visits of an app before a day. Fails if the app must keep them.';

CREATE FUNCTION delete_unkept_visits(app integer, day integer, from_page bigint, n integer, OUT deleted bigint, OUT last_page bigint)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM closed_days AS c WHERE c.day_id = day)
       OR NOT EXISTS (SELECT FROM visits_kept AS k WHERE k.app_id = app AND day < k.from_day) THEN
        RAISE EXCEPTION 'app % keeps its visits of day %', app, day USING ERRCODE = '22023';
    END IF;
    PERFORM require_retention(app);
    WITH chosen AS MATERIALIZED (
        SELECT v.page_id, v.ip
        FROM pages AS p
        JOIN visits AS v ON v.page_id = p.id AND v.day_id = day
        WHERE p.app_id = app
          AND p.id >= from_page
        ORDER BY p.id
        LIMIT n
    ), gone AS (
        DELETE FROM visits AS v
        USING chosen AS s
        WHERE v.page_id = s.page_id
          AND v.day_id = day
          AND v.ip = s.ip
    )
    SELECT count(*), coalesce(max(s.page_id), from_page)
    INTO deleted, last_page
    FROM chosen AS s;
END
$$;

COMMENT ON FUNCTION delete_unkept_visits(integer, integer, bigint, integer) IS 'Deletes up to n visits of an app on a day that it no longer keeps, page by page, starting at from_page. Returns their number and the last page.';

-- A visitor is forgotten at a site and all its pages in the same transaction. Otherwise uv of a page might exceed uv of its
-- site when the visitor returns. The caller has searched the (target, visitor) pairs before, without a lock. A visitor who has
-- returned in the meantime has a later last day at the site, which is checked here. Counting needs the lock of the site, so no
-- visit arrives between this check and the deletion.
--
-- A visitor who still has rows of visits is not forgotten: the last day must be before the first kept day. A late visit may
-- have written rows after the first kept day was set.
CREATE FUNCTION forget_visitors(app integer, before integer, page_ids bigint[], ips inet[]) RETURNS bigint
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
SET enable_seqscan = off -- so that each visitor is looked up by the key, even in a small table, because visits wait for this
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    forgotten bigint;
    unseen    integer;
BEGIN
    PERFORM FROM epochs WHERE name = 'erasures' FOR UPDATE;
    IF NOT EXISTS (SELECT FROM apps AS a WHERE a.id = app AND a.forget_days > 0 AND before <= days_ago(a.forget_days)) THEN
        RAISE EXCEPTION 'app % does not forget visitors who came before %', app, before USING ERRCODE = '22023';
    END IF;
    PERFORM require_retention(app);
    unseen := least(before, coalesce((SELECT k.from_day FROM visits_kept AS k WHERE k.app_id = app), 0));
    PERFORM
    FROM counters AS c
    WHERE c.page_id IN (SELECT coalesce(p.site_id, p.id) FROM pages AS p WHERE p.app_id = app AND p.id = ANY (page_ids))
    ORDER BY c.page_id
    FOR UPDATE;
    WITH pairs AS MATERIALIZED (
        SELECT unnest(page_ids) AS page_id, unnest(ips) AS ip
    ), asked AS MATERIALIZED (
        SELECT k.page_id, k.ip
        FROM pairs AS k
        UNION -- pages that were deleted since the search: their visitors are at the page (deleted) now
        SELECT d.id, k.ip
        FROM pairs AS k
        JOIN pages AS s ON s.id = k.page_id AND s.site_id IS NULL
        JOIN pages AS d ON d.app_id = s.app_id AND d.uri = s.uri || '/(deleted)'
    ), gone AS (
        DELETE FROM visitors AS v
        USING asked AS k, pages AS p
        WHERE v.page_id = k.page_id
          AND v.ip = k.ip
          AND v.last_day < unseen
          AND p.id = v.page_id
          AND p.app_id = app
          AND NOT EXISTS (SELECT FROM visitors AS s WHERE s.page_id = coalesce(p.site_id, p.id) AND s.ip = v.ip AND s.last_day >= unseen)
        RETURNING v.page_id, v.rank
    )
    SELECT erase_ranks(array_agg(g.page_id), array_agg(g.rank))
    INTO forgotten
    FROM gone AS g;
    RETURN forgotten;
END
$$;

COMMENT ON FUNCTION forget_visitors(integer, integer, bigint[], inet[]) IS 'Forgets some (target, visitor) pairs of an app whose visitors have not visited since a day. Fails if the app must keep visitors from before that day. Returns the number of pairs.';

-- The lock ensures that no transaction changes the first kept day while the pause starts. Each run has its own row, so a run
-- that ends does not end the pause of another run.
CREATE FUNCTION pause_retention(app integer, run bigint, hours integer) RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column -- for ON CONFLICT, which cannot name a constraint here: in a cell, the table is a view
DECLARE
    first_day integer;
BEGIN
    PERFORM hold_app_days(app);
    IF hours <= 0 THEN
        DELETE FROM retention_pauses AS p
        WHERE p.app_id = app
          AND p.run = pause_retention.run;
        RETURN first_possible_day(app);
    END IF;
    first_day := first_possible_day(app);
    INSERT INTO retention_pauses AS p (app_id, run, from_day, until)
    VALUES (app, pause_retention.run, first_day, now() + make_interval(hours => least(hours, 24)))
    ON CONFLICT (app_id, run) DO UPDATE
        SET from_day = excluded.from_day,
            until    = excluded.until;
    RETURN first_day;
END
$$;

COMMENT ON FUNCTION pause_retention(integer, bigint, integer) IS 'Pauses the deletion of visits and visitors for their age for an app and a run, for some hours, at most a day. hours 0 ends the pause. Returns the first day for which the app accepts visits.';

-- The day must be at most one day after the present day in the time zone where days begin last. With a later day, no instance
-- would run the daily task until that day. Also deletes the expired pauses of killed runs.
CREATE FUNCTION note_retention(day integer) RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF day > days_ago(-1) THEN
        RAISE EXCEPTION 'day % is in the future', day USING ERRCODE = '22023';
    END IF;
    UPDATE epochs AS e
    SET value = greatest(e.value, day)
    WHERE e.name = 'retention';
    DELETE FROM retention_pauses AS p
    WHERE p.until <= now();
END
$$;

COMMENT ON FUNCTION note_retention(integer) IS 'Notes that the daily task has run on a day, so that other instances need not run it again. Deletes pauses that have ended.';

REVOKE ALL ON FUNCTION keep_visits_from(integer, integer), delete_unkept_visits(integer, integer, bigint, integer),
    forget_visitors(integer, integer, bigint[], inet[]), pause_retention(integer, bigint, integer), note_retention(integer) FROM PUBLIC;
