-- Each visitor of a day has at most one value of a tag's name. So the visitors without a value are pv minus the visitors with
-- a value. A late visit can move a visitor's first day to an earlier day, but does not move tags. So a day may have fewer new
-- visitors than newcomers.
CREATE FUNCTION report.tags(app text, target text, name text, from_day integer, to_day integer, n integer DEFAULT 10, days_before integer DEFAULT 0, compared_to integer DEFAULT NULL)
RETURNS TABLE (value text, pv bigint, newcomers bigint, pv_before bigint, pv_compared bigint, since integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
SET enable_nestloop = off -- the days of a target are read once, not once for each value
AS $$
#variable_conflict use_column
DECLARE
    of_app integer;
    page   bigint;
    site   bigint;
    oldest integer; -- the first day of the site with a tag
BEGIN
    IF n NOT BETWEEN 1 AND 10000 THEN
        RAISE EXCEPTION 'n: % is not between 1 and 10000', n USING ERRCODE = '22023';
    END IF;
    IF NOT EXISTS (SELECT FROM report.tag_names(tags.app) AS n WHERE n.name = tags.name) THEN
        RAISE EXCEPTION 'name: app % has no tag %: report.tag_names(''%'') lists its tags', tags.app, tags.name, tags.app USING ERRCODE = '22023';
    END IF;
    SELECT a.id, p.id, coalesce(p.site_id, p.id)
    INTO of_app, page, site
    FROM apps AS a
    JOIN pages AS p ON p.app_id = a.id AND p.key = page_key(as_stored(tags.target))
    WHERE a.name = tags.app;
    IF page <> site AND tags.name NOT IN ('source', 'campaign') THEN
        RAISE EXCEPTION 'name: pages only have source and campaign: request % for the site', tags.name USING ERRCODE = '22023';
    END IF;
    SELECT d.day_id
    INTO oldest
    FROM tag_days AS d
    WHERE d.page_id = site
    ORDER BY d.day_id
    LIMIT 1;
    RETURN QUERY
    WITH ranges (first_day, last_day, is_before) AS (
        SELECT from_day, to_day, false
        UNION ALL
        SELECT days_earlier(nullif(from_day, 0), days_before), days_earlier(least(compared_to, to_day), days_before), true
        WHERE days_before > 0
    ), counted AS MATERIALIZED ( -- a row for each value of the tag, and a row without tag_id for all visitors
        SELECT v.tag_id,
               coalesce(sum(v.pv)        FILTER (WHERE NOT r.is_before), 0) AS pv,
               coalesce(sum(v.newcomers) FILTER (WHERE NOT r.is_before), 0) AS newcomers,
               coalesce(sum(v.pv)        FILTER (WHERE r.is_before), 0)     AS pv_before,
               coalesce(sum(v.pv)        FILTER (WHERE NOT r.is_before AND v.day_id <= coalesce(compared_to, to_day)), 0) AS pv_compared
        FROM ranges AS r
        CROSS JOIN LATERAL (
            SELECT d.tag_id, d.day_id, d.pv, d.newcomers
            FROM tag_days AS d
            JOIN tags AS t ON t.id = d.tag_id AND t.app_id = of_app AND t.name = tags.name
            WHERE d.page_id = page
              AND d.day_id BETWEEN r.first_day AND r.last_day
            UNION ALL
            SELECT NULL, d.day_id, d.pv, d.new_visitors
            FROM days AS d
            WHERE d.page_id = page
              AND d.day_id BETWEEN r.first_day AND r.last_day
        ) AS v
        GROUP BY v.tag_id
    ), shown AS (
        (
            SELECT c.tag_id, (SELECT t.value FROM tags AS t WHERE t.id = c.tag_id) AS value, c.pv, c.newcomers, c.pv_before, c.pv_compared
            FROM counted AS c
            WHERE c.tag_id IS NOT NULL
              AND c.pv + c.pv_before > 0
            ORDER BY c.pv DESC, c.tag_id
            LIMIT n
        )
        UNION ALL
        SELECT NULL, '(none)', sum(s.sign * c.pv), greatest(sum(s.sign * c.newcomers), 0), sum(s.sign * c.pv_before), sum(s.sign * c.pv_compared)
        FROM counted AS c
        CROSS JOIN LATERAL (SELECT CASE WHEN c.tag_id IS NULL THEN 1 ELSE -1 END AS sign) AS s
        HAVING count(*) > 0
    )
    SELECT s.value, s.pv::bigint, s.newcomers::bigint, s.pv_before::bigint, s.pv_compared::bigint, coalesce(oldest, 0)
    FROM shown AS s
    ORDER BY s.tag_id IS NULL, s.pv DESC, s.tag_id;
END
$$;

COMMENT ON FUNCTION report.tags(text, text, text, integer, integer, integer, integer, integer) IS 'Visitors of a page or site in a range of days by tag: the first n values, by pv, of the tag with this name (source, campaign; for sites also country, language, device, system, browser, hour and the app''s own). The last row, (none), has the visits without the tag. With this row, all values add up exactly to pv of the range. newcomers: visitors whose first visit ever had the value. pv_before: pv days_before days earlier (0 if days_before is 0). With compared_to, pv_compared and pv_before are only for the days up to compared_to. since: the first day on which the site has tags, before which all visits are (none). SELECT * FROM report.tags(''demo'', ''example.com'', ''source'', 20190601, 20190630).';

REVOKE ALL ON FUNCTION report.tags(text, text, text, integer, integer, integer, integer, integer) FROM PUBLIC;
