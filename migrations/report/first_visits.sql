-- Ranks are those that visitors are shown: with the visitors from elsewhere (offsets) before them.
CREATE FUNCTION report.first_visits(app text, target text, n integer DEFAULT 5)
RETURNS TABLE (rank bigint, first_day integer, is_round boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER -- and not sql, which would plan it again for every page
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH target AS MATERIALIZED (
        SELECT t.page_id, t.uv, t.uv - t.counted_uv AS before
        FROM apps AS a
        JOIN pages AS p  ON p.app_id = a.id AND p.key = page_key(as_stored(first_visits.target))
        JOIN totals AS t ON t.page_id = p.id
        WHERE a.name = first_visits.app
    ), round AS (
        SELECT r.rank
        FROM round_numbers() AS r (rank)
    ), chosen AS (
        SELECT t.uv - g.back AS rank
        FROM target AS t
        CROSS JOIN generate_series(0, least(n, 1000) - 1) AS g (back)
        WHERE t.uv - g.back > t.before
        UNION
        (SELECT r.rank
         FROM target AS t
         JOIN round AS r ON r.rank > t.before AND r.rank <= t.uv
         ORDER BY r.rank DESC
         LIMIT least(n, 1000))
    )
    SELECT c.rank, coalesce(v.first_day, 0), EXISTS (SELECT FROM round AS r WHERE r.rank = c.rank)
    FROM target AS t
    CROSS JOIN chosen AS c
    LEFT JOIN visitors AS v ON v.page_id = t.page_id AND v.rank = c.rank - t.before
    ORDER BY c.rank DESC;
END
$$;

COMMENT ON FUNCTION report.first_visits(text, text, integer) IS 'The days on which the latest n visitors of a page or site came for the first time, and the n latest of those with a round number: 1, 2, 5, 10, 20, 50 … Ranks are as shown, with offsets. first_day 0: the visitor was erased or forgotten. SELECT * FROM report.first_visits(''demo'', ''example.com'').';

REVOKE ALL ON FUNCTION report.first_visits(text, text, integer) FROM PUBLIC;
