CREATE FUNCTION report.top_pages(app text, from_day integer, to_day integer, n integer DEFAULT 10, by text DEFAULT 'pv', site text DEFAULT NULL, days_before integer DEFAULT 0, compared_to integer DEFAULT NULL)
RETURNS TABLE (uri text, pv bigint, new_visitors bigint, hot bigint, uniques bigint, uniques_before bigint, uniques_compared bigint, page_id bigint, title text)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    IF top_pages.by NOT IN ('pv', 'uv', 'hot') THEN
        RAISE EXCEPTION 'by: % is not possible: use pv, uv or hot', top_pages.by USING ERRCODE = '22023';
    END IF;
    IF n NOT BETWEEN 1 AND 10000 THEN
        RAISE EXCEPTION 'n: % is not between 1 and 10000', n USING ERRCODE = '22023';
    END IF;
    RETURN QUERY
    WITH first AS MATERIALIZED (
        SELECT a.id AS app_id, s.page_id, s.pv, s.new_visitors, s.hot, s.uniques, o.number
        FROM apps AS a
        CROSS JOIN LATERAL targets_sums(
            top_page_ids(a.id,
                        CASE WHEN top_pages.site IS NULL THEN 0
                             ELSE coalesce((SELECT p.id FROM pages AS p WHERE p.app_id = a.id AND p.key = page_key(as_stored(top_pages.site)) AND p.site_id IS NULL), -1)
                        END,
                        from_day, to_day, top_pages.by, n),
            from_day, to_day) AS s
        CROSS JOIN LATERAL (SELECT CASE top_pages.by WHEN 'pv' THEN s.pv WHEN 'uv' THEN s.new_visitors ELSE s.hot END AS number) AS o
        WHERE a.name = top_pages.app
          AND o.number > 0
        ORDER BY o.number DESC, s.page_id
        LIMIT n
    ), before AS MATERIALIZED (
        SELECT s.page_id, coalesce(s.uniques, s.pv) AS uniques
        FROM targets_sums(
            ARRAY(SELECT f.page_id FROM first AS f WHERE days_before > 0),
            days_earlier(nullif(from_day, 0), days_before), days_earlier(least(compared_to, to_day), days_before)) AS s
    ), compared AS MATERIALIZED (
        SELECT s.page_id, coalesce(s.uniques, s.pv) AS uniques
        FROM targets_sums(
            ARRAY(SELECT f.page_id FROM first AS f WHERE days_before > 0 AND compared_to < to_day),
            from_day, compared_to) AS s
    )
    SELECT p.uri, f.pv, f.new_visitors, f.hot, u.uniques, coalesce(b.uniques, 0), coalesce(c.uniques, u.uniques, f.pv), f.page_id, h.title
    FROM first AS f
    JOIN pages AS p         ON p.id = f.page_id
    LEFT JOIN before AS b   ON b.page_id = f.page_id
    LEFT JOIN compared AS c ON c.page_id = f.page_id
    LEFT JOIN titles AS h   ON h.page_id = f.page_id
    CROSS JOIN LATERAL (
        SELECT coalesce(f.uniques, (SELECT g.uniques FROM group_uniques(f.app_id, ARRAY[f.page_id], from_day, to_day, or_null => true) AS g)) AS uniques
    ) AS u
    ORDER BY f.number DESC, f.page_id;
END
$$;

COMMENT ON FUNCTION report.top_pages(text, integer, integer, integer, text, text, integer, integer) IS 'The first n pages of an app (or of one site) in a range of days, by pv, uv (new visitors) or hot, and their uniques days_before days earlier (0 if days_before is 0). With compared_to, uniques_compared and uniques_before are only for the days up to compared_to. title is null if unknown. uniques are null for pages (deleted) if addresses were hashed in the range. SELECT * FROM report.top_pages(''demo'', 20190601, 20190630, 20).';

REVOKE ALL ON FUNCTION report.top_pages(text, integer, integer, integer, text, text, integer, integer) FROM PUBLIC;
