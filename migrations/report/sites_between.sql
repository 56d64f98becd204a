CREATE FUNCTION report.sites_between(app text, from_day integer, to_day integer, days_before integer DEFAULT 0, n integer DEFAULT 200)
RETURNS TABLE (site text, today bigint, uniques bigint, new_visitors bigint, pv bigint, hot bigint, uniques_before bigint, last_30_days bigint[])
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    SELECT s.uri, l.days[30], coalesce(d.uniques, d.pv), d.new_visitors, d.pv, d.hot, coalesce(b.uniques, 0), l.days
    FROM apps AS a
    CROSS JOIN LATERAL busiest_sites(a.id, least(n, 1000)) AS s
    CROSS JOIN LATERAL target_sums(s.page_id, from_day, to_day) AS d
    LEFT JOIN LATERAL target_sums(s.page_id, days_earlier(nullif(from_day, 0), days_before), days_earlier(to_day, days_before)) AS b ON days_before > 0
    CROSS JOIN LATERAL (
        SELECT array_agg(coalesce(v.pv, 0) ORDER BY g.ago DESC) AS days
        FROM generate_series(0, 29) AS g (ago)
        LEFT JOIN days AS v ON v.page_id = s.page_id AND v.day_id = days_earlier(today(a.tz), g.ago)
    ) AS l
    WHERE a.name = sites_between.app
    ORDER BY d.pv DESC, s.pv DESC, s.page_id
$$;

COMMENT ON FUNCTION report.sites_between(text, integer, integer, integer, integer) IS 'The n busiest sites of an app: visitors of today, what was counted in a range of days, visitors each once, uniques so many days before (0 where days_before is), and visitors of each of the last 30 days. SELECT * FROM report.sites_between(''demo'', 20190601, 20190630, 35).';

REVOKE ALL ON FUNCTION report.sites_between(text, integer, integer, integer, integer) FROM PUBLIC;
