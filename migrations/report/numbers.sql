CREATE FUNCTION report.numbers(app text, target text, from_day integer, to_day integer, days_before integer DEFAULT 0)
RETURNS TABLE (first_day integer, last_day integer, uniques bigint, new_visitors bigint, pv bigint, hot bigint, exact boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER -- an SQL function would be planned again for every page
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT r.first_day, r.last_day, coalesce(s.uniques, u.uniques), s.new_visitors, s.pv, s.hot, coalesce(u.exact, true)
    FROM apps AS a
    JOIN pages AS p ON p.app_id = a.id AND p.key = page_key(as_stored(numbers.target))
    CROSS JOIN LATERAL (
        SELECT CASE numbers.from_day
                   WHEN 0 THEN coalesce((SELECT d.day_id FROM days AS d WHERE d.page_id = p.id ORDER BY d.day_id LIMIT 1), numbers.to_day)
                   ELSE numbers.from_day
               END AS first_day,
               numbers.to_day AS last_day
        UNION ALL
        SELECT days_earlier(nullif(numbers.from_day, 0), days_before), days_earlier(numbers.to_day, days_before)
        WHERE days_before > 0
    ) AS r
    CROSS JOIN LATERAL targets_sums(ARRAY[p.id], r.first_day, r.last_day) AS s
    LEFT JOIN LATERAL group_uniques(a.id, ARRAY[p.id], r.first_day, r.last_day, or_null => true) AS u ON s.uniques IS NULL
    WHERE a.name = numbers.app
    ORDER BY r.last_day DESC;
END
$$;

COMMENT ON FUNCTION report.numbers(text, text, integer, integer, integer) IS 'Numbers of a page or site in a range of days. In uniques, each visitor is counted once. With days_before, a second row has the range that many days earlier. from_day 0 means the first counted day. uniques are null for pages (deleted) if addresses were hashed in the range. SELECT * FROM report.numbers(''demo'', ''example.com'', 20190601, 20190630, 35).';

REVOKE ALL ON FUNCTION report.numbers(text, text, integer, integer, integer) FROM PUBLIC;
