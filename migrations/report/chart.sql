-- Visitors of a week, each counted once, are those who were new in it, and those who returned in it
-- from before it, as in targets_sums; of a day they are its pv. In sums of deleted pages nobody can
-- tell: there each is counted on each of their days.
CREATE FUNCTION report.chart(app text, target text, from_day integer, to_day integer, period text DEFAULT 'day', days_before integer DEFAULT 0, compared_from integer DEFAULT 0, compared_to integer DEFAULT 99991231)
RETURNS TABLE (first_day integer, last_day integer, visitors bigint, new_visitors bigint, pv bigint, hot bigint, visitors_before bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    pages     bigint[]; -- the target, or all sites
    oldest    integer; -- day of them
    knows_new boolean; -- it is known who was new on it
    begins    integer := from_day;
BEGIN
    IF period NOT IN ('day', 'week', 'month') THEN
        RAISE EXCEPTION 'period: % is none: use day, week or month', period USING ERRCODE = '22023';
    END IF;
    SELECT CASE
               WHEN chart.target = '' THEN ARRAY(SELECT p.id FROM pages AS p WHERE p.app_id = a.id AND p.site_id IS NULL AND p.uri <> '(events)')
               ELSE ARRAY(SELECT p.id FROM pages AS p WHERE p.app_id = a.id AND p.key = page_key(as_stored(chart.target)))
           END
    INTO pages
    FROM apps AS a
    WHERE a.name = chart.app;
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
           OR EXISTS ( -- others have counted it, and nobody here
               SELECT
               FROM apps AS a
               JOIN history_days AS h ON h.app_id = a.id AND h.site = split_part(chart.target, '/', 1)
               JOIN history AS o      ON o.day = h.id AND o.uri = chart.target
               WHERE a.name = chart.app
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
           sum(n.visitors)     FILTER (WHERE NOT r.is_before)::bigint,
           sum(n.new_visitors) FILTER (WHERE NOT r.is_before)::bigint,
           sum(n.pv)           FILTER (WHERE NOT r.is_before)::bigint,
           sum(n.hot)          FILTER (WHERE NOT r.is_before)::bigint,
           sum(n.visitors)     FILTER (WHERE r.is_before)::bigint
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
            WHERE chart.period <> 'day'
              AND o.page_id = ANY (pages)
              AND o.day_id BETWEEN r.a_day AND r.z_day
              AND o.previous_day < r.a_day
            UNION ALL
            SELECT returned_from_before(p.previous_days, p.visitors, day_date(p.day_id) - day_date(r.a_day))
            FROM packed_returns AS p
            WHERE chart.period <> 'day'
              AND p.page_id = ANY (pages)
              AND p.day_id BETWEEN r.a_day AND r.z_day
        ) AS b
    ) AS b
    CROSS JOIN LATERAL (
        SELECT CASE WHEN knows_new AND chart.period <> 'day' THEN d.new_visitors + b.visitors ELSE d.pv END AS visitors, d.pv, d.new_visitors, d.hot
        WHERE chart.target <> ''
        UNION ALL
        SELECT NULL, NULL, NULL, d.hot
        WHERE chart.target = ''
    ) AS n
    GROUP BY r.first_day, r.last_day
    ORDER BY r.first_day;
END
$$;

COMMENT ON FUNCTION report.chart(text, text, integer, integer, text, integer, integer, integer) IS 'What was counted for a page or site in each day, week (from Monday) or month of a range, also where nobody came; visitors each once in it, and visitors_before: those of its days up to compared_to, so many days earlier; null where days_before is 0, and in what begins before compared_from or after compared_to. from_day 0 is the first day that was counted. Of the target '''', all sites of the app, hot alone is told: the rest has report.days_where. SELECT * FROM report.chart(''demo'', ''example.com'', 20190601, 20190630, ''week'', 35).';

REVOKE ALL ON FUNCTION report.chart(text, text, integer, integer, text, integer, integer, integer) FROM PUBLIC;
