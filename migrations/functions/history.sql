-- An import first collects all lines in temporary tables, so that memory does not limit the import, and then stores them
-- together. A line has the numbers of a target on a day, or is a page view with hashes of its visit and visitor. A number -1
-- and a hash 0 mean unknown.
CREATE FUNCTION read_history(sites text[], uris text[], days integer[], page_views bigint[], visits bigint[], visitors bigint[], new_visitors bigint[],
                             by_visit bigint[], by_visitor bigint[]) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF to_regclass('pg_temp.history_lines') IS NULL THEN
        CREATE TEMP TABLE history_lines (page_views bigint, visits bigint, visitors bigint, new_visitors bigint, by_visit bigint, by_visitor bigint,
                                         day_id integer NOT NULL, site text NOT NULL, uri text NOT NULL) ON COMMIT DROP;
    END IF;
    INSERT INTO pg_temp.history_lines
    SELECT nullif(l.page_views, -1), nullif(l.visits, -1), nullif(l.visitors, -1), nullif(l.new_visitors, -1), nullif(l.by_visit, 0),
           nullif(l.by_visitor, 0), l.day_id, l.site, l.uri
    FROM unnest(read_history.page_views, read_history.visits, read_history.visitors, read_history.new_visitors, by_visit, by_visitor, days, sites, uris)
        AS l (page_views, visits, visitors, new_visitors, by_visit, by_visitor, day_id, site, uri);
END
$$;

COMMENT ON FUNCTION read_history(text[], text[], integer[], bigint[], bigint[], bigint[], bigint[], bigint[], bigint[]) IS 'Collects lines of an import of history (numbers of other programs). The values at one index of the arrays are a line.';

REVOKE ALL ON FUNCTION read_history(text[], text[], integer[], bigint[], bigint[], bigint[], bigint[], bigint[], bigint[]) FROM PUBLIC;

-- Several lines with the same target and day become one row:
--   - page views: the sum
--   - visits and visitors: if the lines have hashes, the number of different hashes; if the lines are parts of the day
--     (are_parts), the sum; otherwise unknown, as for two spellings of a page
-- If the file has no page views for a site, the site gets the sum of the page views of its pages. A site without a line has
-- unknown visits and visitors, unless the lines of its pages have hashes.
--
-- Days of other sources are checked under the lock, so that the second of two concurrent imports sees the days of the first.
-- If a replaced day was part of the totals, the new day is, too.
CREATE FUNCTION put_history(app integer, of_source text, of_files text[], are_parts boolean, to_totals boolean DEFAULT false)
RETURNS TABLE (import_id integer, rows bigint, added bigint, replaced bigint, same bigint, first_day integer, last_day integer, hidden bigint,
               others bigint, other text, other_site text, other_first integer, other_last integer)
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('footfall.history'), app);
    CREATE TEMP TABLE history_read ON COMMIT DROP AS
    SELECT l.site, l.uri, l.day_id, sum(l.page_views)::bigint AS page_views,
           CASE WHEN count(l.by_visit) > 0   THEN count(DISTINCT l.by_visit)   WHEN are_parts OR count(*) = 1 THEN sum(l.visits)::bigint   END AS visits,
           CASE WHEN count(l.by_visitor) > 0 THEN count(DISTINCT l.by_visitor) WHEN are_parts OR count(*) = 1 THEN sum(l.visitors)::bigint END AS visitors,
           CASE WHEN count(*) = 1 THEN sum(l.new_visitors)::bigint END AS new_visitors, NULL::bigint AS uv
    FROM pg_temp.history_lines AS l
    GROUP BY l.site, l.uri, l.day_id;
    INSERT INTO pg_temp.history_read
    SELECT l.site, l.site, l.day_id, sum(l.page_views), nullif(count(DISTINCT l.by_visit), 0), nullif(count(DISTINCT l.by_visitor), 0), NULL
    FROM pg_temp.history_lines AS l
    WHERE NOT EXISTS (SELECT FROM pg_temp.history_read AS r WHERE r.uri = l.site AND r.day_id = l.day_id)
    GROUP BY l.site, l.day_id;
    UPDATE pg_temp.history_read AS r
    SET page_views = p.page_views
    FROM (SELECT p.site, p.day_id, sum(p.page_views) AS page_views FROM pg_temp.history_read AS p WHERE p.uri <> p.site GROUP BY p.site, p.day_id) AS p
    WHERE r.uri = r.site
      AND r.page_views IS NULL
      AND p.site = r.site
      AND p.day_id = r.day_id;
    DELETE FROM pg_temp.history_read AS r
    WHERE num_nonnulls(r.page_views, r.visits, r.visitors, r.new_visitors) = 0;

    SELECT count(*), min(i.source), min(d.site), min(d.day_id), max(d.day_id)
    INTO others, other, other_site, other_first, other_last
    FROM (SELECT DISTINCT r.site, r.day_id FROM pg_temp.history_read AS r) AS r
    JOIN history_days AS d    ON d.app_id = app AND d.site = r.site AND d.day_id = r.day_id
    JOIN history_imports AS i ON i.app_id = d.app_id AND i.id = d.import_id
    WHERE i.source <> of_source;
    IF others > 0 THEN
        RETURN NEXT;
        RETURN;
    END IF;

    IF to_totals OR EXISTS (SELECT FROM history_days AS d WHERE d.app_id = app AND d.in_totals) THEN
        WITH counted AS MATERIALIZED (
            SELECT l.site, l.day_id
            FROM (SELECT DISTINCT l.site, l.day_id FROM pg_temp.history_lines AS l WHERE l.by_visitor IS NOT NULL) AS l
            JOIN pages AS p ON p.app_id = app AND p.key = page_key(l.site)
            JOIN days AS c  ON c.page_id = p.id AND c.day_id = l.day_id
        ), firsts AS (
            SELECT t.uri, min(l.day_id) AS day_id
            FROM pg_temp.history_lines AS l
            CROSS JOIN LATERAL (VALUES (l.uri), (l.site)) AS t (uri)
            WHERE l.by_visitor IS NOT NULL
              AND NOT EXISTS (SELECT FROM counted AS c WHERE c.site = l.site AND c.day_id = l.day_id)
            GROUP BY t.uri, l.by_visitor
        )
        UPDATE pg_temp.history_read AS r
        SET uv = f.uv
        FROM (SELECT f.uri, f.day_id, count(*) AS uv FROM firsts AS f GROUP BY f.uri, f.day_id) AS f
        WHERE r.uri = f.uri
          AND r.day_id = f.day_id;
    END IF;

    CREATE TEMP TABLE history_news ON COMMIT DROP AS
    SELECT r.site, r.day_id, max(d.id) AS was, coalesce(bool_or(d.in_totals), false) AS was_in_totals,
           max(d.id) IS NULL OR bool_or((r.page_views, r.visits, r.visitors, r.new_visitors) IS DISTINCT FROM (h.page_views, h.visits, h.visitors, h.new_visitors))
               OR count(*) <> (SELECT count(*) FROM history AS o WHERE o.day = max(d.id)) AS is_new
    FROM pg_temp.history_read AS r
    LEFT JOIN history_days AS d ON d.app_id = app AND d.site = r.site AND d.day_id = r.day_id
    LEFT JOIN history AS h      ON h.day = d.id AND h.uri = r.uri
    GROUP BY r.site, r.day_id;
    SELECT count(*) FILTER (WHERE n.is_new AND n.was IS NULL), count(*) FILTER (WHERE n.is_new AND n.was IS NOT NULL), count(*) FILTER (WHERE NOT n.is_new),
           min(n.day_id), max(n.day_id), count(c.page_id)
    INTO added, replaced, same, first_day, last_day, hidden
    FROM pg_temp.history_news AS n
    LEFT JOIN (
        SELECT p.uri AS site, c.day_id, c.page_id
        FROM pages AS p
        JOIN days AS c ON c.page_id = p.id
        WHERE p.app_id = app
          AND p.site_id IS NULL
    ) AS c USING (site, day_id);
    rows := (SELECT count(*) FROM pg_temp.history_read AS r);
    IF added + replaced > 0 THEN
        DELETE FROM history_days AS d
        USING pg_temp.history_news AS n
        WHERE n.is_new
          AND d.id = n.was;
        INSERT INTO history_imports (app_id, source, files)
        VALUES (app, of_source, of_files)
        RETURNING id
        INTO import_id;
        INSERT INTO history_days (app_id, import_id, day_id, site, in_totals)
        SELECT app, import_id, n.day_id, n.site, n.was_in_totals
        FROM pg_temp.history_news AS n
        WHERE n.is_new;
        -- The days are selected in a separate statement, because Citus would copy the tables again for each statement of the
        -- loop.
        CREATE TEMP TABLE history_new_days ON COMMIT DROP AS
        SELECT d.id, d.site, d.day_id
        FROM history_days AS d
        JOIN pg_temp.history_news AS n ON n.site = d.site AND n.day_id = d.day_id AND n.is_new
        WHERE d.app_id = app;
        ANALYZE pg_temp.history_new_days; -- otherwise each line may be compared with each day
        -- PostgreSQL remembers each row of a statement until it has checked the foreign key. So each statement writes
        -- at most 32 MB.
        FOR block IN 0 .. pg_relation_size('pg_temp.history_read') / current_setting('block_size')::bigint BY 4096 LOOP
            INSERT INTO history (day, page_views, visits, visitors, new_visitors, uv, uri)
            SELECT d.id, r.page_views, r.visits, r.visitors, r.new_visitors, r.uv, r.uri
            FROM pg_temp.history_read AS r
            JOIN pg_temp.history_new_days AS d ON d.site = r.site AND d.day_id = r.day_id
            WHERE r.ctid >= format('(%s,0)', block)::tid
              AND r.ctid < format('(%s,0)', block + 4096)::tid;
        END LOOP;
        DELETE FROM history_imports AS i
        WHERE i.app_id = app
          AND NOT EXISTS (SELECT FROM history_days AS d WHERE d.app_id = i.app_id AND d.import_id = i.id);
    END IF;
    IF to_totals THEN
        PERFORM history_to_totals(app);
    END IF;
    RETURN NEXT;
END
$$;

COMMENT ON FUNCTION put_history(integer, text, text[], boolean, boolean) IS 'Stores the collected lines of an import in history, always whole days of a site. Returns how many days are new, replaced, unchanged, and hidden because the site was counted here. Stores nothing if another source has some of the days. to_totals: marks these days as included in offsets.';

REVOKE ALL ON FUNCTION put_history(integer, text, text[], boolean, boolean) FROM PUBLIC;

CREATE FUNCTION first_history(most integer) RETURNS TABLE (uri text, day_id integer, page_views bigint, visits bigint, visitors bigint, new_visitors bigint)
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT r.uri, r.day_id, r.page_views, r.visits, r.visitors, r.new_visitors
    FROM pg_temp.history_read AS r
    ORDER BY r.day_id, r.site, r.uri <> r.site, r.page_views DESC, r.uri
    LIMIT most;
END
$$;

COMMENT ON FUNCTION first_history(integer) IS 'The first rows, in order of days, of the import of this transaction.';

REVOKE ALL ON FUNCTION first_history(integer) FROM PUBLIC;

-- Days that were imported without --offsets, or by version 0.2.0, have no uv: this import adds it. Offsets that 0.2.0 has set
-- may already contain these days. That part of the offset is recorded as history from now on.
CREATE FUNCTION history_to_totals(app integer) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    UPDATE history AS h
    SET uv = r.uv
    FROM pg_temp.history_read AS r
    JOIN pg_temp.history_news AS n ON n.site = r.site AND n.day_id = r.day_id AND NOT n.is_new
    WHERE h.day = n.was
      AND h.uri = r.uri
      AND h.uv IS NULL
      AND r.uv IS NOT NULL;
    UPDATE offsets AS o
    SET history_hot = o.history_hot + least(o.hot - o.history_hot, s.hot),
        history_pv  = o.history_pv  + least(o.pv  - o.history_pv, s.pv),
        history_uv  = o.history_uv  + least(o.uv  - o.history_uv, s.uv)
    FROM (
        SELECT h.uri, sum(greatest(h.page_views, h.visitors, 0)) AS hot, sum(coalesce(h.visitors, 0)) AS pv, sum(coalesce(h.uv, 0)) AS uv
        FROM pg_temp.history_news AS n
        JOIN history_days AS d ON d.app_id = app AND d.site = n.site AND d.day_id = n.day_id AND NOT d.in_totals
        JOIN history AS h      ON h.day = d.id
        WHERE n.was IS NOT NULL
        GROUP BY h.uri
    ) AS s
    WHERE o.app_id = app
      AND o.key = page_key(s.uri)
      AND NOT o.by_hand
      AND o.hot > o.history_hot;
    UPDATE history_days AS d
    SET in_totals = true
    FROM pg_temp.history_news AS n
    WHERE d.app_id = app
      AND d.site = n.site
      AND d.day_id = n.day_id
      AND NOT d.in_totals;
END
$$;

COMMENT ON FUNCTION history_to_totals(integer) IS 'Marks the days of the import of this transaction as included in offsets.';

REVOKE ALL ON FUNCTION history_to_totals(integer) FROM PUBLIC;

-- For instances of version 0.2.0, which set these sums as offsets. Numbers of other programs may contradict each other, but
-- hot, pv and uv of an offset must not. Visitors of several days can only be distinguished if page views have hashes of
-- visitors.
CREATE FUNCTION history_sums(app integer) RETURNS TABLE (uri text, hot bigint, pv bigint, uv bigint)
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    RETURN QUERY
    WITH counted AS MATERIALIZED (
        SELECT r.site, r.day_id
        FROM (SELECT DISTINCT r.site, r.day_id FROM pg_temp.history_read AS r) AS r
        JOIN pages AS p ON p.app_id = app AND p.key = page_key(r.site)
        JOIN days AS c  ON c.page_id = p.id AND c.day_id = r.day_id
    ), summed AS (
        SELECT r.uri, sum(greatest(r.page_views, r.visitors, 0))::bigint AS hot, sum(coalesce(r.visitors, 0))::bigint AS pv
        FROM pg_temp.history_read AS r
        WHERE NOT EXISTS (SELECT FROM counted AS c WHERE c.site = r.site AND c.day_id = r.day_id)
        GROUP BY r.uri
    ), came AS (
        SELECT t.uri, count(DISTINCT l.by_visitor) AS uv
        FROM pg_temp.history_lines AS l
        CROSS JOIN LATERAL (VALUES (l.uri), (l.site)) AS t (uri)
        WHERE l.by_visitor IS NOT NULL
          AND NOT EXISTS (SELECT FROM counted AS c WHERE c.site = l.site AND c.day_id = l.day_id)
        GROUP BY t.uri
    )
    SELECT s.uri, s.hot, s.pv, least(s.pv, coalesce(c.uv, 0))
    FROM summed AS s
    LEFT JOIN came AS c ON c.uri = s.uri
    WHERE s.hot > 0
    ORDER BY s.uri;
END
$$;

COMMENT ON FUNCTION history_sums(integer) IS 'Sums of each target in the import of this transaction, over days that were not counted here. The sums are valid as offsets (hot >= pv >= uv).';

REVOKE ALL ON FUNCTION history_sums(integer) FROM PUBLIC;
