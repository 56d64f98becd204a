-- The visitors of a week or month are its new visitors, and the visitors whose previous visit was before the week or
-- month, as in targets_sums. So each visitor counts once. The visitors of a day are its pv. Visitors of a page
-- (deleted) cannot be distinguished, so they are counted once for each of their days.
CREATE FUNCTION report.periods(app text, target text, from_day integer, to_day integer, period text DEFAULT 'day', days_before integer DEFAULT 0, compared_from integer DEFAULT 0, compared_to integer DEFAULT 99991231)
RETURNS TABLE (first_day integer, last_day integer, visitors bigint, new_visitors bigint, pv bigint, hot bigint, visitors_before bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    pages     bigint[]; -- the target, or all sites
    counted   integer; -- the first counted day of the target's site, or of all sites
    oldest    integer; -- the first counted day of the target, or of all sites
    knows_new boolean; -- whether the new visitors of the day oldest are recorded; false for pages (deleted)
    begins    integer := from_day;
BEGIN
    IF period NOT IN ('day', 'week', 'month') THEN
        RAISE EXCEPTION 'period: % is not possible: use day, week or month', period USING ERRCODE = '22023';
    END IF;
    SELECT CASE
               WHEN periods.target = '' THEN ARRAY(SELECT p.id FROM pages AS p WHERE p.app_id = a.id AND p.site_id IS NULL AND p.uri <> '(events)')
               ELSE ARRAY(SELECT p.id FROM pages AS p WHERE p.app_id = a.id AND p.key = page_key(as_stored(periods.target)))
           END
    INTO pages
    FROM apps AS a
    WHERE a.name = periods.app;
    SELECT min(d.day_id)
    INTO counted
    FROM unnest(CASE
                    WHEN periods.target = '' THEN pages
                    ELSE ARRAY(SELECT p.id FROM apps AS a JOIN pages AS p ON p.app_id = a.id AND p.key = page_key(split_part(as_stored(periods.target), '/', 1))
                               WHERE a.name = periods.app)
                END) AS p (id)
    CROSS JOIN LATERAL (SELECT d.day_id FROM days AS d WHERE d.page_id = p.id ORDER BY d.day_id LIMIT 1) AS d;
    SELECT d.day_id, d.new_visitors > 0
    INTO oldest, knows_new
    FROM unnest(pages) AS p (id)
    CROSS JOIN LATERAL (SELECT d.day_id, d.new_visitors FROM days AS d WHERE d.page_id = p.id ORDER BY d.day_id LIMIT 1) AS d
    ORDER BY d.day_id
    LIMIT 1;
    IF begins = 0 THEN
        begins := oldest;
    END IF;
    IF day_date(to_day) - day_date(begins) > 36525 THEN
        RAISE EXCEPTION 'from_day: it is more than a century before to_day' USING ERRCODE = '22023';
    END IF;
    RETURN QUERY
    WITH periods AS (
        SELECT to_char(min(g.day), 'YYYYMMDD')::integer AS first_day,
               to_char(max(g.day), 'YYYYMMDD')::integer AS last_day
        FROM generate_series(day_date(begins)::timestamp, day_date(to_day), '1 day') AS g (day)
        WHERE cardinality(pages) > 0
           OR EXISTS ( -- counted by another program, but not here
               SELECT
               FROM apps AS a
               JOIN history_days AS h ON h.app_id = a.id AND h.site = split_part(periods.target, '/', 1)
               JOIN history AS o      ON o.day = h.id AND o.uri = periods.target
               WHERE a.name = periods.app
           )
        GROUP BY date_trunc(period, g.day)
    ), ranges AS (
        SELECT p.first_day, p.last_day, false AS is_before, p.first_day AS a_day, p.last_day AS z_day
        FROM periods AS p
        UNION ALL
        SELECT p.first_day, p.last_day, true, days_earlier(p.first_day, days_before), days_earlier(least(p.last_day, compared_to), days_before)
        FROM periods AS p
        WHERE days_before > 0
          AND p.first_day BETWEEN compared_from AND compared_to
    )
    SELECT r.first_day, r.last_day,
           sum(n.visitors)     FILTER (WHERE NOT r.is_before AND r.z_day >= counted)::bigint,
           sum(n.new_visitors) FILTER (WHERE NOT r.is_before AND r.z_day >= counted)::bigint,
           sum(n.pv)           FILTER (WHERE NOT r.is_before AND r.z_day >= counted)::bigint,
           sum(n.hot)          FILTER (WHERE NOT r.is_before AND r.z_day >= counted)::bigint,
           sum(n.visitors)     FILTER (WHERE r.is_before AND r.z_day >= counted)::bigint
    FROM ranges AS r
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(d.pv), 0) AS pv, coalesce(sum(d.new_visitors), 0) AS new_visitors, coalesce(sum(d.hot), 0) AS hot
        FROM days AS d
        WHERE d.page_id = ANY (pages)
          AND d.day_id BETWEEN r.a_day AND r.z_day
    ) AS d
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(b.visitors), 0) AS visitors
        FROM (
            SELECT o.visitors
            FROM open_returns AS o
            WHERE periods.period <> 'day'
              AND o.page_id = ANY (pages)
              AND o.day_id BETWEEN r.a_day AND r.z_day
              AND o.previous_day < r.a_day
            UNION ALL
            SELECT returned_from_before(p.previous_days, p.visitors, day_date(p.day_id) - day_date(r.a_day))
            FROM packed_returns AS p
            WHERE periods.period <> 'day'
              AND p.page_id = ANY (pages)
              AND p.day_id BETWEEN r.a_day AND r.z_day
        ) AS b
    ) AS b
    CROSS JOIN LATERAL (
        SELECT CASE WHEN knows_new AND periods.period <> 'day' THEN d.new_visitors + b.visitors ELSE d.pv END AS visitors, d.pv, d.new_visitors, d.hot
        WHERE periods.target <> ''
        UNION ALL
        SELECT NULL, NULL, NULL, d.hot
        WHERE periods.target = ''
    ) AS n
    GROUP BY r.first_day, r.last_day
    ORDER BY r.first_day;
END
$$;

COMMENT ON FUNCTION report.periods(text, text, integer, integer, text, integer, integer, integer) IS 'The numbers of a page or site for each day, week (from Monday) or month of a range, including periods without visitors. They are null for periods that ended before the first counted day of the site. visitors: each counted once in the period. visitors_before: visitors days_before days earlier, for the days of the period up to compared_to. Null if days_before is 0, and in periods that start before compared_from or after compared_to. from_day 0 means the first counted day. The target '''' means all sites of the app, and only has hot: use report.days_where for the other numbers. SELECT * FROM report.periods(''demo'', ''example.com'', 20190601, 20190630, ''week'', 35).';

-- For instances of version 0.2.0, which run alongside this version during an upgrade: they cannot read null as hot.
CREATE FUNCTION report.chart(app text, target text, from_day integer, to_day integer, period text DEFAULT 'day', days_before integer DEFAULT 0, compared_from integer DEFAULT 0, compared_to integer DEFAULT 99991231)
RETURNS TABLE (first_day integer, last_day integer, visitors bigint, new_visitors bigint, pv bigint, hot bigint, visitors_before bigint)
LANGUAGE sql STABLE
SET search_path = footfall, pg_temp
AS $$
    SELECT p.first_day, p.last_day, coalesce(p.visitors, z.zero), coalesce(p.new_visitors, z.zero), coalesce(p.pv, z.zero), coalesce(p.hot, 0), p.visitors_before
    FROM report.periods(chart.app, chart.target, from_day, to_day, period, days_before, compared_from, compared_to) AS p
    CROSS JOIN (SELECT CASE WHEN chart.target <> '' THEN 0 END AS zero) AS z
$$;

COMMENT ON FUNCTION report.chart(text, text, integer, integer, text, integer, integer, integer) IS 'The same as report.periods, but with 0 instead of null for periods that were not counted. For programs that were written for version 0.2.0: use report.periods instead.';

REVOKE ALL ON FUNCTION report.periods(text, text, integer, integer, text, integer, integer, integer), report.chart(text, text, integer, integer, text, integer, integer, integer) FROM PUBLIC;
