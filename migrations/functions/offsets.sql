-- An offset is the sum of two parts: numbers that a user has set, and numbers from history (imported daily numbers). So
-- readers of an offset need only one number. Numbers of other programs may contradict each other, but hot, pv and uv of
-- an offset must not. Visitors of several days can only be distinguished if the import has ids of visitors.
CREATE FUNCTION put_offsets(app integer, uris text[], hots bigint[], pvs bigint[], uvs bigint[], are_by_hand boolean, of_history boolean)
RETURNS TABLE (uri text, was_hot bigint, was_pv bigint, was_uv bigint, hot bigint, pv bigint, uv bigint, is_new boolean)
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    CREATE TEMP TABLE offsets_put ON COMMIT DROP AS
    WITH given AS (
        SELECT g.uri, g.hot, g.pv, g.uv
        FROM unnest(uris, hots, pvs, uvs) AS g (uri, hot, pv, uv)
    ), told AS (
        SELECT h.uri, sum(greatest(h.page_views, h.visitors, 0))::bigint AS hot, sum(coalesce(h.visitors, 0))::bigint AS pv,
               least(sum(coalesce(h.visitors, 0)), sum(coalesce(h.uv, 0)))::bigint AS uv
        FROM history_days AS d
        JOIN history AS h ON h.day = d.id
        WHERE d.app_id = app
          AND d.in_totals
          AND (of_history OR d.site = ANY (ARRAY(SELECT split_part(g.uri, '/', 1) FROM given AS g)) AND h.uri = ANY (uris))
          AND NOT EXISTS (SELECT
                          FROM pages AS p
                          JOIN days AS c ON c.page_id = p.id AND c.day_id = d.day_id
                          WHERE p.app_id = app
                            AND p.key = page_key(d.site))
        GROUP BY h.uri
    ), named AS (
        SELECT g.uri
        FROM given AS g
        UNION
        SELECT t.uri
        FROM told AS t
        WHERE t.hot > 0
        UNION
        SELECT o.uri
        FROM offsets AS o
        WHERE of_history
          AND o.app_id = app
          AND o.history_hot > 0
    ), parts AS (
        SELECT n.uri, o.uri IS NULL AS is_new, g.uri IS NOT NULL AND are_by_hand AS by_hand,
               coalesce(o.hot, 0) AS was_hot, coalesce(o.pv, 0) AS was_pv, coalesce(o.uv, 0) AS was_uv,
               coalesce(t.hot, 0) AS told_hot, coalesce(t.pv, 0) AS told_pv, coalesce(t.uv, 0) AS told_uv,
               coalesce(g.hot, greatest(o.hot - o.history_hot, 0), 0) AS hot,
               coalesce(g.pv, greatest(o.pv - o.history_pv, 0), 0)    AS pv,
               coalesce(g.uv, greatest(o.uv - o.history_uv, 0), 0)    AS uv,
               coalesce(c.uv, 0) AS counted_uv
        FROM named AS n
        LEFT JOIN given AS g    ON g.uri = n.uri
        LEFT JOIN told AS t     ON t.uri = n.uri
        LEFT JOIN offsets AS o  ON o.app_id = app AND o.key = page_key(n.uri)
        LEFT JOIN pages AS p    ON p.app_id = app AND p.key = page_key(n.uri)
        LEFT JOIN counters AS c ON c.page_id = p.id
    )
    SELECT p.uri, p.is_new, p.by_hand, p.was_hot, p.was_pv, p.was_uv, p.told_hot, p.told_pv, p.told_uv, p.counted_uv,
           p.told_hot + p.hot AS hot, p.told_pv + least(p.pv, p.hot) AS pv, p.told_uv + least(p.uv, p.pv, p.hot) AS uv
    FROM parts AS p;
    -- Visitors who were already counted have seen ranks that include the previous offset, so told keeps the previous uv.
    INSERT INTO offsets AS o (app_id, uri, hot, pv, uv, history_hot, history_pv, history_uv, by_hand, told)
    SELECT app, n.uri, n.hot, n.pv, n.uv, n.told_hot, n.told_pv, n.told_uv, n.by_hand,
           CASE WHEN n.counted_uv > 0 THEN ARRAY[n.counted_uv, 0] ELSE '{}' END
    FROM pg_temp.offsets_put AS n
    ON CONFLICT (app_id, key) DO UPDATE
        SET hot = excluded.hot, pv = excluded.pv, uv = excluded.uv,
            history_hot = excluded.history_hot, history_pv = excluded.history_pv, history_uv = excluded.history_uv,
            by_hand = excluded.by_hand OR (o.by_hand AND excluded.hot > excluded.history_hot),
            told = CASE
                       WHEN excluded.told = '{}' OR (excluded.uv = o.uv AND (excluded.hot > 0 OR o.told <> '{}')) THEN o.told
                       ELSE o.told || ARRAY[excluded.told[1], o.uv]
                   END
        WHERE (o.hot, o.pv, o.uv, o.history_hot, o.history_pv, o.history_uv) <>
              (excluded.hot, excluded.pv, excluded.uv, excluded.history_hot, excluded.history_pv, excluded.history_uv)
           OR (excluded.by_hand AND NOT o.by_hand)
           OR (excluded.hot = 0 AND NOT excluded.by_hand);
    -- The row of a removed offset stays if its target has visitors, because told in this row has the uv that their ranks
    -- include.
    DELETE FROM offsets AS o
    USING pg_temp.offsets_put AS n
    WHERE o.app_id = app
      AND o.key = page_key(n.uri)
      AND o.hot = 0
      AND NOT o.by_hand
      AND n.counted_uv = 0;
    RETURN QUERY
    SELECT n.uri, n.was_hot, n.was_pv, n.was_uv, n.hot, n.pv, n.uv, n.is_new
    FROM pg_temp.offsets_put AS n;
    DROP TABLE pg_temp.offsets_put;
END
$$;

COMMENT ON FUNCTION put_offsets(integer, text[], bigint[], bigint[], bigint[], boolean, boolean) IS 'Sets the part of offsets that users set (are_by_hand false: removes it). If of_history is true, also sets the part from history, for all targets. Returns each offset before and after.';

REVOKE ALL ON FUNCTION put_offsets(integer, text[], bigint[], bigint[], bigint[], boolean, boolean) FROM PUBLIC;
