CREATE FUNCTION report.tag_pages(app text, name text, value text, from_day integer, to_day integer, n integer DEFAULT 10, site text DEFAULT NULL)
RETURNS TABLE (uri text, pv bigint, newcomers bigint, title text)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    of_app   integer;
    of_sites bigint[];
BEGIN
    IF n NOT BETWEEN 1 AND 10000 THEN
        RAISE EXCEPTION 'n: % is not between 1 and 10000', n USING ERRCODE = '22023';
    END IF;
    SELECT a.id, array_agg(s.id)
    INTO of_app, of_sites
    FROM apps AS a
    JOIN pages AS s ON s.app_id = a.id
    WHERE a.name = tag_pages.app
      AND s.site_id IS NULL
      AND (tag_pages.site IS NULL OR s.uri = as_stored(tag_pages.site))
    GROUP BY a.id;
    RETURN QUERY
    SELECT p.uri, d.pv, d.newcomers, (SELECT h.title FROM titles AS h WHERE h.page_id = p.id)
    FROM pages AS p
    CROSS JOIN LATERAL ( -- looked up page by page, because an index for all pages would slow down each visit
        SELECT sum(d.pv)::bigint AS pv, sum(d.newcomers)::bigint AS newcomers
        FROM tag_days AS d
        WHERE d.page_id = p.id
          AND d.day_id BETWEEN from_day AND to_day
          AND d.tag_id = (SELECT t.id FROM tags AS t WHERE t.app_id = of_app AND t.name = tag_pages.name AND t.value = tag_pages.value)
        OFFSET 0
    ) AS d
    WHERE p.site_id = ANY (of_sites)
      AND d.pv IS NOT NULL
    ORDER BY d.pv DESC, p.id
    LIMIT n;
END
$$;

COMMENT ON FUNCTION report.tag_pages(text, text, text, integer, integer, integer, text) IS 'The first n pages of an app (or of one site) in a range of days, by the number of visitors with a value of source or campaign. pv: visitors whose first visit of the day to the page had the value; newcomers: visitors whose first visit ever had it. SELECT * FROM report.tag_pages(''demo'', ''source'', ''google'', 20190601, 20190630, 20).';

REVOKE ALL ON FUNCTION report.tag_pages(text, text, text, integer, integer, integer, text) FROM PUBLIC;
