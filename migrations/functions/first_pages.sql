-- Where there are not many more pages than are asked for, they are these. Else each day's list
-- tells the first pages, and its last number is what a page that is not in it can have had at most.
-- Those bounds, added up over the days, tell which listed pages may be among the first; they are
-- added up exactly. If no page that is in no list can have reached the last of them, the answer is
-- proved. If not, longer lists are tried, and then all is read.
CREATE FUNCTION first_pages(app integer, site bigint, from_day integer, to_day integer, measure text, n integer) RETURNS bigint[]
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
SET enable_seqscan = off -- what is another app's is not read, however few there may be
AS $$
DECLARE
    few    integer := greatest(2 * n, 20);
    depth  integer := least(few, 1000);
    scope  bigint[] := ARRAY(SELECT s.id FROM pages AS s WHERE s.app_id = app AND s.site_id IS NULL AND site IN (0, s.id));
    chosen bigint[] := ARRAY(SELECT p.id FROM pages AS p WHERE p.site_id = ANY (scope) LIMIT few + 1);
    proved boolean;
BEGIN
    IF cardinality(chosen) <= few THEN
        RETURN chosen;
    END IF;
    LOOP
        WITH counted AS MATERIALIZED (
            SELECT DISTINCT d.day_id
            FROM days AS d
            WHERE d.page_id = ANY (scope)
              AND d.day_id BETWEEN from_day AND to_day
        ), listed AS MATERIALIZED (
            SELECT o.day_id, l.page_id, l.number
            FROM counted AS o
            JOIN tops AS t ON t.app_id = app AND t.site_id = site AND t.day_id = o.day_id AND t.by = measure
            CROSS JOIN LATERAL unnest(t.page_ids[:depth], t.numbers[:depth]) AS l (page_id, number)
            UNION ALL
            SELECT o.day_id, l.page_id, l.number
            FROM counted AS o
            CROSS JOIN LATERAL (
                SELECT d.page_id, CASE measure WHEN 'pv' THEN d.pv WHEN 'uv' THEN d.new_visitors ELSE d.hot END AS number
                FROM days AS d
                WHERE d.site_id = ANY (scope)
                  AND d.day_id = o.day_id
                ORDER BY number DESC
                LIMIT depth
            ) AS l
            WHERE l.number > 0
              AND NOT EXISTS (SELECT FROM tops AS t WHERE t.app_id = app AND t.site_id = site AND t.day_id = o.day_id AND t.by = measure)
        ), edges AS MATERIALIZED (
            SELECT l.day_id, CASE WHEN count(*) < depth THEN 0 ELSE min(l.number) END AS edge
            FROM listed AS l
            GROUP BY l.day_id
        ), ceiling AS MATERIALIZED (
            SELECT coalesce(sum(e.edge), 0) AS ceiling
            FROM edges AS e
        ), known AS MATERIALIZED (
            SELECT l.page_id, sum(l.number) AS least, sum(e.edge) AS covered
            FROM listed AS l
            JOIN edges AS e ON e.day_id = l.day_id
            GROUP BY l.page_id
        ), candidates AS MATERIALIZED (
            SELECT k.page_id
            FROM known AS k
            CROSS JOIN ceiling AS c
            WHERE k.least + c.ceiling - k.covered >= coalesce((SELECT b.least FROM known AS b ORDER BY b.least DESC OFFSET n - 1 LIMIT 1), 0)
        ), first AS MATERIALIZED (
            SELECT c.page_id, d.number
            FROM candidates AS c
            CROSS JOIN LATERAL (
                SELECT sum(CASE measure WHEN 'pv' THEN d.pv WHEN 'uv' THEN d.new_visitors ELSE d.hot END) AS number
                FROM days AS d
                WHERE d.page_id = c.page_id
                  AND d.day_id BETWEEN from_day AND to_day
            ) AS d
            WHERE d.number > 0
            ORDER BY d.number DESC, c.page_id
            LIMIT n
        )
        SELECT array_agg(f.page_id),
               (SELECT c.ceiling FROM ceiling AS c) < CASE WHEN count(*) < n THEN 1 ELSE min(f.number) END
        INTO chosen, proved
        FROM first AS f;

        EXIT WHEN proved OR depth = 1000;
        depth := least(10 * depth, 1000);
    END LOOP;
    IF NOT proved THEN
        chosen := ARRAY(
            SELECT d.page_id
            FROM days AS d
            WHERE d.site_id = ANY (scope)
              AND d.day_id BETWEEN from_day AND to_day
            GROUP BY d.page_id
            ORDER BY sum(CASE measure WHEN 'pv' THEN d.pv WHEN 'uv' THEN d.new_visitors ELSE d.hot END) DESC, d.page_id
            LIMIT n
        );
    END IF;
    RETURN chosen;
END
$$;

COMMENT ON FUNCTION first_pages(integer, bigint, integer, integer, text, integer) IS 'Pages of an app, or of one of its sites (0: all), that include the first n in a range of days by pv, uv or hot, and not many others.';
