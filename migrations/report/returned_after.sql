-- Each number in packed_returns counts visitors whose previous visit was at least some number of
-- days before. So a span of any length is the difference of two of them.
CREATE FUNCTION report.returned_after(app text, target text, from_day integer, to_day integer)
RETURNS TABLE (from_days integer, to_days integer, visitors bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER -- an SQL function would be planned again for every page
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH spans (from_days, to_days) AS (
        VALUES (1, 1), (2, 2), (3, 3), (4, 6), (7, 7), (8, 13), (14, 29), (30, 89), (90, 99999)
    ), page AS MATERIALIZED (
        SELECT p.id
        FROM apps AS a
        JOIN pages AS p ON p.app_id = a.id AND p.key = page_key(as_stored(returned_after.target))
        WHERE a.name = returned_after.app
    ), gone AS MATERIALIZED (
        SELECT day_date(o.day_id) - day_date(o.previous_day) AS days, sum(o.visitors) AS visitors
        FROM page AS p
        JOIN open_returns AS o ON o.page_id = p.id
        WHERE o.day_id BETWEEN from_day AND to_day
        GROUP BY days
    ), packed AS MATERIALIZED (
        SELECT r.previous_days, r.visitors
        FROM page AS p
        JOIN packed_returns AS r ON r.page_id = p.id
        WHERE r.day_id BETWEEN from_day AND to_day
    )
    SELECT s.from_days, s.to_days,
           (coalesce((SELECT sum(g.visitors) FROM gone AS g WHERE g.days BETWEEN s.from_days AND s.to_days), 0)
            + coalesce((SELECT sum(returned_from_before(r.previous_days, r.visitors, s.from_days - 1)
                                   - returned_from_before(r.previous_days, r.visitors, s.to_days))
                        FROM packed AS r), 0))::bigint
    FROM spans AS s
    WHERE EXISTS (SELECT FROM page)
    ORDER BY s.from_days;
END
$$;

COMMENT ON FUNCTION report.returned_after(text, text, integer, integer) IS 'Number of returns of visitors to a page or site in a range of days, by the number of days since their previous visit. to_days 99999: or more. SELECT * FROM report.returned_after(''demo'', ''example.com'', 20190601, 20190630).';

REVOKE ALL ON FUNCTION report.returned_after(text, text, integer, integer) FROM PUBLIC;
