CREATE FUNCTION report.tag_pages(app text, name text, value text, from_day integer, to_day integer, n integer DEFAULT 10, site text DEFAULT NULL)
RETURNS TABLE (uri text, pv bigint, newcomers bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    IF n NOT BETWEEN 1 AND 10000 THEN
        RAISE EXCEPTION 'n: % is not between 1 and 10000', n USING ERRCODE = '22023';
    END IF;
    RETURN QUERY
    WITH counted AS MATERIALIZED (
        SELECT d.page_id, sum(d.pv)::bigint AS pv, sum(d.newcomers)::bigint AS newcomers
        FROM apps AS a
        JOIN tags AS t     ON t.app_id = a.id AND t.name = tag_pages.name AND t.value = tag_pages.value
        JOIN tag_days AS d ON d.tag_id = t.id AND d.day_id BETWEEN from_day AND to_day
        WHERE a.name = tag_pages.app
        GROUP BY d.page_id
    )
    SELECT p.uri, c.pv, c.newcomers
    FROM counted AS c
    JOIN pages AS p ON p.id = c.page_id AND p.site_id IS NOT NULL
    WHERE tag_pages.site IS NULL
       OR p.site_id = (SELECT s.id FROM pages AS s WHERE s.app_id = p.app_id AND s.key = page_key(as_stored(tag_pages.site)))
    ORDER BY c.pv DESC, p.id
    LIMIT n;
END
$$;

COMMENT ON FUNCTION report.tag_pages(text, text, text, integer, integer, integer, text) IS 'The first n pages of an app (or of one site) to which visitors came with a value of source or campaign in a range of days: how many, by the first visit of each of their days there, and the newcomers among them. SELECT * FROM report.tag_pages(''demo'', ''source'', ''google'', 20190601, 20190630, 20).';

REVOKE ALL ON FUNCTION report.tag_pages(text, text, text, integer, integer, integer, text) FROM PUBLIC;
