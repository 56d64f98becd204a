CREATE FUNCTION report.apps_today(apps text[])
RETURNS TABLE (app text, tz text, sites bigint, today bigint, last_30_days bigint[], first_day integer)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    SELECT a.name, a.tz, (SELECT count(*) FROM pages AS p WHERE p.app_id = a.id AND p.site_id IS NULL), l.days[30], l.days,
           coalesce((SELECT min(f.day_id)
                     FROM busiest_sites(a.id, 200) AS s
                     CROSS JOIN LATERAL (SELECT d.day_id FROM days AS d WHERE d.page_id = s.page_id ORDER BY d.day_id LIMIT 1) AS f), 0)
    FROM apps AS a
    CROSS JOIN LATERAL (
        SELECT array_agg(coalesce(v.hot, 0) ORDER BY g.ago DESC) AS days
        FROM generate_series(0, 29) AS g (ago)
        LEFT JOIN (
            SELECT d.day_id, sum(d.hot)::bigint AS hot
            FROM busiest_sites(a.id, 200) AS s
            JOIN days AS d ON d.page_id = s.page_id AND d.day_id BETWEEN days_earlier(today(a.tz), 29) AND today(a.tz)
            WHERE s.uri <> '(events)'
            GROUP BY d.day_id
        ) AS v ON v.day_id = days_earlier(today(a.tz), g.ago)
    ) AS l
    WHERE a.name = ANY (apps_today.apps)
    ORDER BY a.name
$$;

COMMENT ON FUNCTION report.apps_today(text[]) IS 'Overview of apps: the number of sites, the page views (hot) of today and of each of the last 30 days (the 200 busiest sites, without events), and the first counted day of these sites (0: none). SELECT * FROM report.apps_today(''{demo}'').';

REVOKE ALL ON FUNCTION report.apps_today(text[]) FROM PUBLIC;
