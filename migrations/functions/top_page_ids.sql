-- If there are not many more pages than requested, all are returned. Otherwise, the lists of top pages of each day are used.
-- The last number in a list is an upper bound for pages that are not in the list. The sums of these bounds over the days show
-- which listed pages may be among the first n. If these are more than a few pages, their numbers are added up exactly. If no
-- unlisted page can have reached the number of the n-th page, the result is proved. If not, longer lists are tried, and finally
-- all pages are read.
--
-- If nothing was counted outside of the range, the numbers of a page are read from its single row of counters. A page (deleted)
-- has no new visitors.
CREATE FUNCTION top_page_ids(app integer, site bigint, from_day integer, to_day integer, measure text, n integer) RETURNS bigint[]
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
SET enable_seqscan = off -- so that rows of other apps are never read
AS $$
DECLARE
    few    integer := greatest(2 * n, 20);
    depth  integer := least(few, 1000);
    scope  bigint[] := ARRAY(SELECT s.id FROM pages AS s WHERE s.app_id = app AND s.site_id IS NULL AND site IN (0, s.id));
    chosen bigint[] := ARRAY(SELECT p.id FROM pages AS p WHERE p.site_id = ANY (scope) LIMIT few + 1);
    proved boolean;
    whole  boolean; -- nothing was counted outside of the range
BEGIN
    IF cardinality(chosen) <= few THEN
        RETURN chosen;
    END IF;
    whole := NOT EXISTS (SELECT FROM days AS d WHERE d.page_id = ANY (scope) AND d.day_id < from_day)
             AND NOT EXISTS (SELECT FROM days AS d WHERE d.page_id = ANY (scope) AND d.day_id > to_day);
    LOOP
        WITH counted AS MATERIALIZED (
            SELECT DISTINCT d.day_id
            FROM days AS d
            WHERE d.page_id = ANY (scope)
              AND d.day_id BETWEEN from_day AND to_day
        ), unlisted AS MATERIALIZED ( -- days without a list
            SELECT c.day_id
            FROM counted AS c
            WHERE NOT EXISTS (SELECT FROM tops AS t WHERE t.app_id = app AND t.site_id = site AND t.day_id = c.day_id AND t.by = measure)
        ), lists AS MATERIALIZED (
            SELECT o.page_ids, o.numbers, coalesce(o.numbers[depth], 0) AS edge
            FROM (
                SELECT t.page_ids[:depth] AS page_ids, t.numbers[:depth] AS numbers
                FROM counted AS c
                JOIN tops AS t ON t.app_id = app AND t.site_id = site AND t.day_id = c.day_id AND t.by = measure
                OFFSET 0 -- so that each list is cut only once
            ) AS o
            UNION ALL
            SELECT l.page_ids, l.numbers, coalesce(l.numbers[depth], 0)
            FROM unlisted AS u
            CROSS JOIN LATERAL (
                SELECT array_agg(f.page_id ORDER BY f.number DESC) AS page_ids, array_agg(f.number ORDER BY f.number DESC) AS numbers
                FROM (
                    SELECT d.page_id, CASE measure WHEN 'pv' THEN d.pv WHEN 'uv' THEN d.new_visitors ELSE d.hot END AS number
                    FROM days AS d
                    WHERE d.site_id = ANY (scope)
                      AND d.day_id = u.day_id
                    ORDER BY number DESC
                    LIMIT depth
                ) AS f
                WHERE f.number > 0
            ) AS l
        ), ceiling AS MATERIALIZED (
            SELECT coalesce(sum(l.edge), 0) AS ceiling
            FROM lists AS l
        ), known AS MATERIALIZED (
            SELECT p.page_id, sum(p.number) AS least, sum(l.edge) AS covered
            FROM lists AS l
            CROSS JOIN LATERAL unnest(l.page_ids, l.numbers) AS p (page_id, number)
            GROUP BY p.page_id
        ), last AS MATERIALIZED (
            SELECT coalesce((SELECT k.least FROM known AS k ORDER BY k.least DESC OFFSET n - 1 LIMIT 1), 0) AS least
        ), candidates AS MATERIALIZED (
            SELECT k.page_id, count(*) OVER () <= few AND c.ceiling < l.least AS will_do
            FROM known AS k
            CROSS JOIN ceiling AS c
            CROSS JOIN last AS l
            WHERE k.least + c.ceiling - k.covered >= l.least
        ), first AS MATERIALIZED (
            SELECT c.page_id, d.number
            FROM candidates AS c
            CROSS JOIN LATERAL (
                SELECT sum(CASE measure WHEN 'pv' THEN d.pv WHEN 'uv' THEN d.new_visitors ELSE d.hot END) AS number
                FROM days AS d
                WHERE NOT whole
                  AND d.page_id = c.page_id
                  AND d.day_id BETWEEN from_day AND to_day
                UNION ALL
                SELECT CASE measure WHEN 'pv' THEN t.pv WHEN 'uv' THEN t.uv ELSE t.hot END
                FROM counters AS t
                WHERE whole
                  AND t.page_id = c.page_id
            ) AS d
            WHERE NOT c.will_do
              AND d.number > 0
            ORDER BY d.number DESC, c.page_id
            LIMIT n
        )
        SELECT coalesce(array_agg(f.page_id), (SELECT array_agg(c.page_id) FROM candidates AS c WHERE c.will_do)),
               coalesce((SELECT bool_and(c.will_do) FROM candidates AS c), false)
               OR (SELECT c.ceiling FROM ceiling AS c) < CASE WHEN count(*) < n THEN 1 ELSE min(f.number) END
        INTO chosen, proved
        FROM first AS f;

        EXIT WHEN proved OR depth = 1000;
        depth := least(10 * depth, 1000);
    END LOOP;
    IF NOT proved THEN
        chosen := ARRAY(
            SELECT o.page_id
            FROM (
                SELECT d.page_id, sum(CASE measure WHEN 'pv' THEN d.pv WHEN 'uv' THEN d.new_visitors ELSE d.hot END) AS number
                FROM days AS d
                WHERE NOT whole
                  AND d.site_id = ANY (scope)
                  AND d.day_id BETWEEN from_day AND to_day
                GROUP BY d.page_id
                UNION ALL
                SELECT t.page_id,
                       CASE
                           WHEN measure = 'pv' THEN t.pv
                           WHEN measure = 'hot' THEN t.hot
                           WHEN substr(p.uri, strpos(p.uri, '/')) <> '/(deleted)' THEN t.uv
                       END
                FROM pages AS p
                JOIN counters AS t ON t.page_id = p.id
                WHERE whole
                  AND p.site_id = ANY (scope)
            ) AS o
            ORDER BY o.number DESC NULLS LAST, o.page_id
            LIMIT n
        );
    END IF;
    RETURN chosen;
END
$$;

COMMENT ON FUNCTION top_page_ids(integer, bigint, integer, integer, text, integer) IS 'Pages of an app, or of one of its sites (0: all), that include the first n in a range of days by pv, uv or hot, and not many others.';
