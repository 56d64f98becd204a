CREATE FUNCTION round_numbers() RETURNS SETOF bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT (d.digit * power(10::numeric, e.zeros))::bigint
    FROM (VALUES (1), (2), (5)) AS d (digit)
    CROSS JOIN generate_series(0, 15) AS e (zeros)
$$;

COMMENT ON FUNCTION round_numbers() IS 'Round numbers of visitors, for which webhooks are called: 1, 2, 5, 10, 20, 50 …';

-- Adds a call to a webhook for each visitor with a round number who was counted since the last check. The number is the
-- displayed one, which includes the offset. The update compares webhooks.seen again, so that only one of two sessions adds
-- the calls. Without also_others, nothing is written unless a number was round, because this function runs every second.
CREATE FUNCTION see_round_numbers(also_others boolean DEFAULT false) RETURNS void
LANGUAGE sql
SET search_path = footfall, pg_temp
AS $$
    WITH passed AS MATERIALIZED (
        SELECT w.id, w.seen, t.counted_uv, c.calls
        FROM webhooks AS w
        JOIN apps AS a   ON a.id = w.app_id
        JOIN pages AS p  ON p.app_id = w.app_id AND p.key = w.key
        JOIN totals AS t ON t.page_id = p.id
        CROSS JOIN LATERAL (
            SELECT array_agg(row_to_json(b)::text ORDER BY b.rank) AS calls
            FROM (
                SELECT a.name AS app, w.uri AS target, n.rank, day_date(v.first_day) AS first_day,
                       w.id || '/' || (n.rank - (t.uv - t.counted_uv)) AS id -- unique for each visitor, whatever number is shown
                FROM round_numbers() AS n (rank)
                LEFT JOIN visitors AS v ON v.page_id = p.id AND v.rank = n.rank - (t.uv - t.counted_uv)
                WHERE n.rank - (t.uv - t.counted_uv) > w.seen
                  AND n.rank <= t.uv
            ) AS b
        ) AS c
        WHERE t.counted_uv > w.seen
          AND (also_others OR c.calls IS NOT NULL)
    ),
    locked AS MATERIALIZED (
        SELECT w.id FROM webhooks AS w JOIN passed AS p ON p.id = w.id ORDER BY w.id FOR UPDATE OF w
    )
    UPDATE webhooks AS w
    SET seen = p.counted_uv,
        waiting = w.waiting || p.calls,
        since = CASE WHEN w.waiting = '{}' THEN now() ELSE w.since END
    FROM passed AS p
    JOIN locked AS l ON l.id = p.id
    WHERE w.id = p.id
      AND w.seen = p.seen
$$;

COMMENT ON FUNCTION see_round_numbers(boolean) IS 'Adds calls to webhooks.waiting for visitors who were counted since the last check. also_others: updates webhooks.seen even if there was no round number.';

REVOKE ALL ON FUNCTION see_round_numbers(boolean) FROM PUBLIC;
