-- rank is the number that the visitor saw at the first visit, which includes the offset (imported
-- numbers) of that time.
CREATE FUNCTION report.first_visits(app text, target text, n integer DEFAULT 5)
RETURNS TABLE (rank bigint, first_day integer, is_round boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER -- an SQL function would be planned again for every page
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH target AS MATERIALIZED (
        SELECT t.page_id, t.counted_uv, t.uv - t.counted_uv AS before, o.told
        FROM apps AS a
        JOIN pages AS p        ON p.app_id = a.id AND p.key = page_key(as_stored(first_visits.target))
        JOIN totals AS t       ON t.page_id = p.id
        LEFT JOIN offsets AS o ON o.app_id = a.id AND o.key = p.key
        WHERE a.name = first_visits.app
    ), parts AS MATERIALIZED ( -- groups of visitors, each with the offset that their ranks include
        SELECT coalesce(lag(s.last) OVER (ORDER BY s.place), 0) AS above, s.last, s.before
        FROM (
            SELECT i.place, t.told[2 * i.place - 1] AS last, t.told[2 * i.place] AS before
            FROM target AS t
            CROSS JOIN generate_series(1, cardinality(t.told) / 2) AS i (place)
            UNION ALL
            SELECT 2147483647, t.counted_uv, t.before
            FROM target AS t
        ) AS s
    ), chosen AS (
        SELECT t.counted_uv - g.back AS visitor, t.counted_uv - g.back + p.before AS rank
        FROM target AS t
        CROSS JOIN generate_series(0, least(n, 1000) - 1) AS g (back)
        JOIN parts AS p ON t.counted_uv - g.back > p.above AND t.counted_uv - g.back <= p.last
        UNION
        (SELECT r.rank - p.before, r.rank
         FROM parts AS p
         JOIN round_numbers() AS r (rank) ON r.rank - p.before > p.above AND r.rank - p.before <= p.last
         ORDER BY 1 DESC
         LIMIT least(n, 1000))
    )
    SELECT c.rank, coalesce(v.first_day, 0), EXISTS (SELECT FROM round_numbers() AS r (rank) WHERE r.rank = c.rank)
    FROM target AS t
    CROSS JOIN chosen AS c
    LEFT JOIN visitors AS v ON v.page_id = t.page_id AND v.rank = c.visitor
    ORDER BY c.visitor DESC;
END
$$;

COMMENT ON FUNCTION report.first_visits(text, text, integer) IS 'Days of the first visit of the latest n visitors of a page or site, and of the n latest visitors with a round number: 1, 2, 5, 10, 20, 50 … Ranks include the offset of that day. first_day 0: the visitor was erased or forgotten. SELECT * FROM report.first_visits(''demo'', ''example.com'').';

REVOKE ALL ON FUNCTION report.first_visits(text, text, integer) FROM PUBLIC;
