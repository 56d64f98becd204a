-- All pages of the site are searched, because no index finds a part of a text. Searching 100,000 pages takes as long as
-- computing the top pages of a month. The numbers of the range are read only for the returned pages.
CREATE FUNCTION report.find_pages(app text, site text, part text, from_day integer, to_day integer, n integer DEFAULT 20, days_before integer DEFAULT 0, compared_to integer DEFAULT NULL, titled text DEFAULT NULL)
RETURNS TABLE (uri text, uniques bigint, new_visitors bigint, pv bigint, hot bigint, uniques_before bigint, uniques_compared bigint, title text)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    IF n NOT BETWEEN 1 AND 10000 THEN
        RAISE EXCEPTION 'n: % is not between 1 and 10000', n USING ERRCODE = '22023';
    END IF;
    RETURN QUERY
    WITH found AS MATERIALIZED (
        SELECT p.id, p.uri, c.pv
        FROM apps AS a
        JOIN pages AS s    ON s.app_id = a.id AND s.key = page_key(as_stored(find_pages.site)) AND s.site_id IS NULL
        JOIN pages AS p    ON p.site_id = s.id
        JOIN counters AS c ON c.page_id = p.id
        WHERE a.name = find_pages.app
          AND (strpos(lower(substr(p.uri, length(s.uri) + 1) COLLATE "C"), lower(part COLLATE "C")) > 0
               OR p.id IN (SELECT h.page_id FROM titles AS h WHERE strpos(lower(h.title), lower(coalesce(titled, part))) > 0))
        ORDER BY c.pv DESC, p.id
        LIMIT n
    ), before AS MATERIALIZED (
        SELECT b.page_id, coalesce(b.uniques, b.pv) AS uniques
        FROM targets_sums(
            ARRAY(SELECT f.id FROM found AS f WHERE days_before > 0),
            days_earlier(nullif(from_day, 0), days_before), days_earlier(least(compared_to, to_day), days_before)) AS b
    ), compared AS MATERIALIZED (
        SELECT c.page_id, coalesce(c.uniques, c.pv) AS uniques
        FROM targets_sums(
            ARRAY(SELECT f.id FROM found AS f WHERE days_before > 0 AND compared_to < to_day),
            from_day, compared_to) AS c
    )
    SELECT f.uri, coalesce(d.uniques, d.pv), d.new_visitors, d.pv, d.hot, coalesce(b.uniques, 0), coalesce(c.uniques, d.uniques, d.pv), h.title
    FROM found AS f
    JOIN targets_sums(ARRAY(SELECT o.id FROM found AS o), from_day, to_day) AS d ON d.page_id = f.id
    LEFT JOIN before AS b   ON b.page_id = f.id
    LEFT JOIN compared AS c ON c.page_id = f.id
    LEFT JOIN titles AS h   ON h.page_id = f.id
    ORDER BY d.pv DESC, f.pv DESC, f.id;
END
$$;

COMMENT ON FUNCTION report.find_pages(text, text, text, integer, integer, integer, integer, integer, text) IS 'The n most visited pages (over all time) of a site whose path or title contains the text part, in upper or lower case (titled: another text for titles). For each: the numbers in a range of days, and the uniques days_before days earlier (0 if days_before is 0). With compared_to, uniques_compared and uniques_before are only for the days up to compared_to. Paths are as stored. SELECT * FROM report.find_pages(''demo'', ''example.com'', ''blog'', 20190601, 20190630).';

REVOKE ALL ON FUNCTION report.find_pages(text, text, text, integer, integer, integer, integer, integer, text) FROM PUBLIC;
