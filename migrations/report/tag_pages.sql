CREATE FUNCTION report.tag_pages(app text, name text, value text, from_day integer, to_day integer, n integer DEFAULT 10, site text DEFAULT NULL)
RETURNS TABLE (uri text, pv bigint, newcomers bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    of_app  integer;
    of_site bigint;
BEGIN
    IF n NOT BETWEEN 1 AND 10000 THEN
        RAISE EXCEPTION 'n: % is not between 1 and 10000', n USING ERRCODE = '22023';
    END IF;
    SELECT a.id, s.id
    INTO of_app, of_site
    FROM apps AS a
    LEFT JOIN pages AS s ON s.app_id = a.id AND s.key = page_key(as_stored(tag_pages.site))
    WHERE a.name = tag_pages.app;
    RETURN QUERY
    WITH counted AS MATERIALIZED (
        SELECT d.page_id, sum(d.pv)::bigint AS pv, sum(d.newcomers)::bigint AS newcomers
        FROM tag_days AS d
        WHERE d.tag_id = (SELECT t.id FROM tags AS t WHERE t.app_id = of_app AND t.name = tag_pages.name AND t.value = tag_pages.value)
          AND d.day_id BETWEEN from_day AND to_day
        GROUP BY d.page_id
    )
    SELECT p.uri, c.pv, c.newcomers
    FROM counted AS c
    CROSS JOIN LATERAL ( -- by id: the planner does not know how many there are
        SELECT p.uri, p.site_id
        FROM pages AS p
        WHERE p.id = c.page_id
        OFFSET 0
    ) AS p
    WHERE p.site_id = of_site
       OR p.site_id IS NOT NULL AND tag_pages.site IS NULL
    ORDER BY c.pv DESC, c.page_id
    LIMIT n;
END
$$;

COMMENT ON FUNCTION report.tag_pages(text, text, text, integer, integer, integer, text) IS 'The first n pages of an app (or of one site) to which visitors came with a value of source or campaign in a range of days: how many, by the first visit of each of their days there, and the newcomers among them. SELECT * FROM report.tag_pages(''demo'', ''source'', ''google'', 20190601, 20190630, 20).';

REVOKE ALL ON FUNCTION report.tag_pages(text, text, text, integer, integer, integer, text) FROM PUBLIC;
