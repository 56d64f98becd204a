CREATE FUNCTION report.top_pages(app text, from_day integer, to_day integer, n integer DEFAULT 10, by text DEFAULT 'pv', site text DEFAULT NULL)
RETURNS TABLE (uri text, pv bigint, new_visitors bigint, hot bigint, uniques bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    IF top_pages.by NOT IN ('pv', 'uv', 'hot') THEN
        RAISE EXCEPTION 'by: % is no number of a page: use pv, uv or hot', top_pages.by USING ERRCODE = '22023';
    END IF;
    IF n NOT BETWEEN 1 AND 10000 THEN
        RAISE EXCEPTION 'n: % is not between 1 and 10000', n USING ERRCODE = '22023';
    END IF;
    RETURN QUERY
    SELECT p.uri, f.pv, f.new_visitors, f.hot,
           coalesce(f.uniques, (SELECT u.uniques FROM target_uniques(f.app_id, f.page_id, from_day, to_day) AS u))
    FROM (
        SELECT a.id AS app_id, s.page_id, s.pv, s.new_visitors, s.hot, s.uniques, o.number
        FROM apps AS a
        CROSS JOIN LATERAL targets_sums(
            first_pages(a.id,
                        CASE WHEN top_pages.site IS NULL THEN 0
                             ELSE coalesce((SELECT p.id FROM pages AS p WHERE p.app_id = a.id AND p.key = page_key(top_pages.site) AND p.site_id IS NULL), -1)
                        END,
                        from_day, to_day, top_pages.by, n),
            from_day, to_day) AS s
        CROSS JOIN LATERAL (SELECT CASE top_pages.by WHEN 'pv' THEN s.pv WHEN 'uv' THEN s.new_visitors ELSE s.hot END AS number) AS o
        WHERE a.name = top_pages.app
          AND o.number > 0
        ORDER BY o.number DESC, s.page_id
        LIMIT n
    ) AS f
    JOIN pages AS p ON p.id = f.page_id
    ORDER BY f.number DESC, f.page_id;
END
$$;

COMMENT ON FUNCTION report.top_pages(text, integer, integer, integer, text, text) IS 'The first n pages of an app (or of one site) in a range of days, by pv, uv (new visitors) or hot: SELECT * FROM report.top_pages(''demo'', 20190601, 20190630, 20).';

REVOKE ALL ON FUNCTION report.top_pages(text, integer, integer, integer, text, text) FROM PUBLIC;
