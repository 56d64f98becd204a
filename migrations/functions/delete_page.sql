-- A page is deleted in two transactions. The first one (hide_page) hides the page, which is fast, however much was
-- counted for the page. After that, no batch counts for the page. Later batches do not find the page, and earlier
-- batches have ended when the lock on its counters is taken. The second one (merge_hidden_pages) moves the page's
-- numbers to the page (deleted) of its site. It needs no lock against visits, because no visit counts for the hidden
-- page or for the page (deleted).

-- The page (deleted) counts as a new page of the app. It is created even if the app has reached its limit of new pages
-- for the day.
CREATE FUNCTION hide_page(app integer, of_site text, target text) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    hidden  bigint := (SELECT p.id FROM pages AS p WHERE p.app_id = app AND p.key = page_key(target));
    deleted text   := of_site || '/(deleted)';
    made    bigint;
BEGIN
    IF hidden IS NULL THEN
        RETURN false;
    END IF;
    PERFORM hold_new_pages(app);
    INSERT INTO pages (app_id, site_id, uri)
    SELECT app, p.id, deleted
    FROM pages AS p
    WHERE p.app_id = app
      AND p.key = page_key(of_site)
    ON CONFLICT (app_id, key) DO NOTHING;
    GET DIAGNOSTICS made = ROW_COUNT;
    UPDATE page_tallies AS t SET today = t.today + made WHERE t.app_id = app;
    INSERT INTO counters (page_id) -- waits for a batch that is counting the first visit of one of these pages
    SELECT p.id
    FROM pages AS p
    WHERE p.app_id = app
      AND p.key IN (page_key(deleted), page_key(target))
    ORDER BY p.id
    ON CONFLICT (page_id) DO NOTHING;
    PERFORM FROM counters AS c WHERE c.page_id = hidden FOR UPDATE;
    UPDATE pages AS p SET uri = deleted || ' ' || hidden WHERE p.id = hidden; -- instances discard their caches (trigger pages_erased)
    RETURN true;
END
$$;

COMMENT ON FUNCTION hide_page(integer, text, text) IS 'Renames a page, so that its numbers can be moved to the page (deleted) of its site. Returns false if the page does not exist.';

-- Erased visitors cannot be distinguished, so it is unknown how many of them visited both pages. As many as possible are
-- counted as different visitors. There are two limits. Every visitor of a page also visited the site. So the page cannot
-- have more erased visitors than the site, on each day and in total. And every visitor visited on some day, so there are
-- at most as many visitors as (visitor, day) pairs.
CREATE FUNCTION merge_page(site bigint, from_page bigint, into_page bigint, kept_from integer) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    more_days     bigint;
    more_visitors bigint;
BEGIN
    -- The previous day of moved visits is 0, because it is unknown for erased visitors, who exist only as sums. Visits
    -- of days that are not kept are deleted, because retention may already have deleted those of the other page.
    WITH gone AS (
        DELETE FROM visits AS v
        WHERE v.page_id = from_page
        RETURNING v.day_id, v.ip
    ), moved AS (
        INSERT INTO visits (page_id, day_id, previous_day, ip)
        SELECT into_page, g.day_id, 0, g.ip
        FROM gone AS g
        WHERE g.day_id >= kept_from
        ON CONFLICT DO NOTHING
    ), gone_erased AS (
        DELETE FROM erased_visits AS e
        WHERE e.page_id = from_page
        RETURNING e.day_id, e.visitors
    )
    INSERT INTO erased_visits AS i (page_id, day_id, previous_day, visitors)
    SELECT into_page, g.day_id, 0, sum(g.visitors)
    FROM gone_erased AS g
    GROUP BY g.day_id
    ON CONFLICT (page_id, day_id, previous_day) DO UPDATE
        SET visitors = least(i.visitors + excluded.visitors,
                             (SELECT sum(s.visitors) FROM erased_visits AS s WHERE s.page_id = site AND s.day_id = i.day_id));

    -- The days are moved after the visits. If the visits of a day are kept, the visitors of the day are counted from
    -- them. Otherwise it is unknown which visitors visited both pages. Then all are counted as different visitors, up to
    -- the site's number of visitors. new_visitors is 0 and returns are deleted, because sums do not record which
    -- visitors were new or returned.
    WITH gone AS (
        DELETE FROM days AS d
        WHERE d.page_id = from_page
        RETURNING d.site_id, d.day_id, d.hot, d.pv
    ), gone_returns AS (
        DELETE FROM open_returns AS r
        WHERE r.page_id IN (from_page, into_page)
    ), gone_packed AS (
        DELETE FROM packed_returns AS r
        WHERE r.page_id IN (from_page, into_page)
    ), were AS MATERIALIZED (
        SELECT g.site_id, g.day_id, g.hot,
               coalesce(i.pv, 0) AS before,
               CASE
                   WHEN g.day_id >= kept_from
                   THEN (SELECT count(*) FROM visits AS v WHERE v.page_id = into_page AND v.day_id = g.day_id)
                            + coalesce((SELECT sum(e.visitors) FROM erased_visits AS e WHERE e.page_id = into_page AND e.day_id = g.day_id), 0)
                   ELSE least(coalesce(i.pv, 0) + g.pv, s.pv)
               END AS pv
        FROM gone AS g
        JOIN days AS s      ON s.page_id = site AND s.day_id = g.day_id
        LEFT JOIN days AS i ON i.page_id = into_page AND i.day_id = g.day_id
    ), moved AS (
        INSERT INTO days AS i (page_id, site_id, day_id, hot, pv, new_visitors)
        SELECT into_page, w.site_id, w.day_id, w.hot + w.before, w.pv, 0
        FROM were AS w
        ON CONFLICT (page_id, day_id) DO UPDATE
            SET hot = i.hot + excluded.hot - (SELECT w.before FROM were AS w WHERE w.day_id = excluded.day_id),
                pv  = excluded.pv
    )
    SELECT coalesce(sum(w.pv - w.before), 0)::bigint
    INTO more_days
    FROM were AS w;

    -- The visitors are moved after the days. A visitor of both pages keeps the rank at the page (deleted). A visitor of
    -- only the hidden page gets the next rank there, in the order of the ranks at the hidden page. There can be at most
    -- as many visitors as (visitor, day) pairs. If this limit would be exceeded, too many erased visitors were counted.
    -- Then these newcomers get the ranks of some erased visitors.
    WITH gone_erased AS (
        DELETE FROM erased_visitors AS e
        WHERE e.page_id IN (from_page, into_page)
        RETURNING e.page_id, e.part, e.place, e.places
    ), erased AS MATERIALIZED (
        SELECT g.page_id, r.rank
        FROM gone_erased AS g
        CROSS JOIN LATERAL unpack_ranks(g.part, g.place, g.places) AS r (rank)
    ), page AS MATERIALIZED (
        SELECT c.page_id, c.uv, c.pv - c.uv + more_days AS room,
               (SELECT count(*) FROM erased AS e WHERE e.page_id = into_page) AS erased,
               (SELECT count(*) FROM erased_ranks AS e WHERE e.page_id = site) AS erased_at_site
        FROM counters AS c
        WHERE c.page_id = into_page
    ), gone AS (
        DELETE FROM visitors AS v
        WHERE v.page_id = from_page
        RETURNING v.ip, v.rank, v.first_day, v.last_day
    ), fresh AS MATERIALIZED (
        SELECT g.ip, g.first_day, g.last_day, row_number() OVER (ORDER BY g.rank) AS place
        FROM gone AS g
        WHERE NOT EXISTS (SELECT FROM visitors AS v WHERE v.page_id = into_page AND v.ip = g.ip)
    ), freed AS MATERIALIZED (
        SELECT s.rank, row_number() OVER (ORDER BY s.rank) AS place
        FROM (
            SELECT e.rank
            FROM erased AS e
            WHERE e.page_id = into_page
            ORDER BY e.rank DESC
            LIMIT greatest(0, (SELECT count(*) FROM fresh) - (SELECT page.room FROM page))
        ) AS s
    ), newcomers AS (
        INSERT INTO visitors (page_id, ip, rank, first_day, last_day)
        SELECT page.page_id, n.ip,
               coalesce((SELECT f.rank FROM freed AS f WHERE f.place = n.place), page.uv + n.place - (SELECT count(*) FROM freed)),
               n.first_day, n.last_day
        FROM fresh AS n
        CROSS JOIN page
    ), known AS (
        UPDATE visitors AS v
        SET first_day = least(v.first_day, g.first_day),
            last_day  = greatest(v.last_day, g.last_day)
        FROM gone AS g
        WHERE v.page_id = into_page
          AND v.ip = g.ip
    ), added AS MATERIALIZED (
        SELECT (SELECT count(*) FROM fresh) - (SELECT count(*) FROM freed) AS visitors
    ), still_erased AS (
        SELECT e.rank
        FROM erased AS e
        WHERE e.page_id = into_page
          AND e.rank NOT IN (SELECT f.rank FROM freed AS f)
        UNION ALL
        SELECT page.uv + added.visitors + g.place
        FROM (SELECT row_number() OVER () AS place FROM erased AS e WHERE e.page_id = from_page) AS g
        CROSS JOIN page
        CROSS JOIN added
        WHERE g.place <= least(page.erased_at_site - page.erased, page.room - added.visitors)
    )
    SELECT ((SELECT count(*) FROM fresh) - (SELECT page.erased FROM page)
                + erase_ranks(array_agg(into_page), array_agg(s.rank)))::bigint
    INTO more_visitors
    FROM still_erased AS s;

    PERFORM merge_sketches(from_page, into_page);
    -- Deletes the lists of top pages. The daily task makes them again, from the table days.
    DELETE FROM tops AS t
    USING pages AS s
    WHERE s.id = site
      AND t.app_id = s.app_id
      AND t.site_id IN (0, s.id);

    -- The counters are changed last. A batch that has the page's old name in its caches may wait for the page's
    -- counters. It should not have to wait while the other rows are moved.
    WITH gone AS (
        DELETE FROM counters AS c
        WHERE c.page_id = from_page
        RETURNING c.hot
    )
    UPDATE counters AS c
    SET hot = c.hot + g.hot,
        pv  = c.pv + more_days,
        uv  = c.uv + more_visitors
    FROM gone AS g
    WHERE c.page_id = into_page;
END
$$;

COMMENT ON FUNCTION merge_page(bigint, bigint, bigint, integer) IS 'Moves the numbers of a page to another page of the site. kept_from is the first day whose visits the app keeps.';

CREATE FUNCTION merge_hidden_pages(app integer) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    kept_from integer  := coalesce((SELECT k.from_day FROM visits_kept AS k WHERE k.app_id = app), 0);
    gone      bigint[] := '{}';
    page      record;
BEGIN
    PERFORM hold_app_days(app); -- because late visits to the site may also delete lists of top pages
    FOR page IN
        SELECT p.id, s.id AS site,
               (SELECT d.id FROM pages AS d WHERE d.app_id = app AND d.key = page_key(s.uri || '/(deleted)')) AS deleted
        FROM pages AS p
        JOIN pages AS s ON s.id = p.site_id
        WHERE p.app_id = app
          AND p.uri = s.uri || '/(deleted) ' || p.id
    LOOP
        PERFORM merge_page(page.site, page.id, page.deleted, kept_from);
        gone := gone || page.id;
    END LOOP;
    PERFORM pg_advisory_xact_lock(hashtext('footfall.fold_tags'));
    DELETE FROM tag_days AS t WHERE t.page_id = ANY (gone); -- not moved: some of their visitors may already count for the page (deleted)
    DELETE FROM pages AS p WHERE p.id = ANY (gone);         -- last, because it locks rows that transactions with new pages need
END
$$;

COMMENT ON FUNCTION merge_hidden_pages(integer) IS 'Moves the numbers of the hidden pages of an app to the pages (deleted) of their sites. Then deletes the hidden pages.';
