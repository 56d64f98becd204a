CREATE FUNCTION report.sites_between(app text, from_day integer, to_day integer, days_before integer DEFAULT 0, n integer DEFAULT 200, compared_to integer DEFAULT NULL)
RETURNS TABLE (site text, today bigint, uniques bigint, new_visitors bigint, pv bigint, hot bigint, uniques_before bigint, last_30_days bigint[], uniques_compared bigint, first_day integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER -- an SQL function would be planned again for every page
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH sites AS MATERIALIZED (
        SELECT s.page_id, s.uri, s.pv, today(a.tz) AS today
        FROM apps AS a
        CROSS JOIN LATERAL busiest_sites(a.id, least(n, 10000)) AS s
        WHERE a.name = sites_between.app
    ), last AS MATERIALIZED (
        SELECT g.ago, days_earlier(t.today, g.ago) AS day_id
        FROM (SELECT s.today FROM sites AS s LIMIT 1) AS t
        CROSS JOIN generate_series(0, 29) AS g (ago)
    )
    SELECT s.uri, l.days[30], coalesce(d.uniques, d.pv), d.new_visitors, d.pv, d.hot, coalesce(b.uniques, b.pv, 0), l.days,
           coalesce(c.uniques, c.pv, d.uniques, d.pv), coalesce(f.day_id, 0)
    FROM sites AS s
    JOIN targets_sums(ARRAY(SELECT o.page_id FROM sites AS o), from_day, to_day) AS d ON d.page_id = s.page_id
    LEFT JOIN targets_sums(
        ARRAY(SELECT o.page_id FROM sites AS o WHERE days_before > 0),
        days_earlier(nullif(from_day, 0), days_before), days_earlier(least(compared_to, to_day), days_before)) AS b ON b.page_id = s.page_id
    LEFT JOIN targets_sums(
        ARRAY(SELECT o.page_id FROM sites AS o WHERE days_before > 0 AND compared_to < to_day),
        from_day, compared_to) AS c ON c.page_id = s.page_id
    LEFT JOIN LATERAL (SELECT v.day_id FROM days AS v WHERE v.page_id = s.page_id ORDER BY v.day_id LIMIT 1) AS f ON true
    CROSS JOIN LATERAL (
        SELECT array_agg(coalesce(v.pv, 0) ORDER BY o.ago DESC) AS days
        FROM last AS o
        LEFT JOIN days AS v ON v.page_id = s.page_id AND v.day_id = o.day_id
    ) AS l
    ORDER BY s.uri = '(events)', d.pv DESC, s.pv DESC, s.page_id;
END
$$;

COMMENT ON FUNCTION report.sites_between(text, integer, integer, integer, integer, integer) IS 'The n busiest sites of an app. For each: the visitors of today, numbers in a range of days (each visitor counted once in uniques), uniques days_before days earlier (0 if days_before is 0), visitors of each of the last 30 days, and the first counted day. With compared_to, uniques_compared and uniques_before are only for the days up to compared_to. SELECT * FROM report.sites_between(''demo'', 20190601, 20190630, 35).';

REVOKE ALL ON FUNCTION report.sites_between(text, integer, integer, integer, integer, integer) FROM PUBLIC;
