-- Makes the missing lists of top pages of closed days. only_app and only_day select one app and one day (null: all). While
-- this function runs, its locks keep other transactions from moving rows between pages and from counting for these days.
CREATE FUNCTION make_tops(only_app integer DEFAULT NULL, only_day integer DEFAULT NULL) RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
SET plan_cache_mode = force_custom_plan -- so that the plan leaves out conditions on null parameters
AS $$
DECLARE
    closed integer[] := ARRAY(SELECT c.day_id FROM closed_days AS c WHERE only_day IS NULL OR c.day_id = only_day);
BEGIN
    PERFORM FROM epochs WHERE name = 'erasures' FOR UPDATE;
    PERFORM hold_app_days(o.id)
    FROM (SELECT a.id FROM apps AS a WHERE only_app IS NULL OR a.id = only_app ORDER BY a.id) AS o;
    WITH numbers AS MATERIALIZED (
        SELECT s.app_id, d.site_id, d.day_id, d.page_id, n.by, n.number
        FROM pages AS s
        JOIN days AS d ON d.site_id = s.id AND d.day_id = ANY (closed)
        CROSS JOIN LATERAL (VALUES ('pv', d.pv), ('uv', d.new_visitors), ('hot', d.hot)) AS n (by, number)
        WHERE s.site_id IS NULL
          AND (only_app IS NULL OR s.app_id = only_app)
          AND n.number > 0
    ), ordered AS (
        SELECT app_id, site_id, day_id, page_id, by, number,
               row_number() OVER (PARTITION BY app_id, site_id, day_id, by ORDER BY number DESC, page_id) AS place
        FROM numbers
        UNION ALL
        SELECT app_id, 0, day_id, page_id, by, number,
               row_number() OVER (PARTITION BY app_id, day_id, by ORDER BY number DESC, page_id)
        FROM numbers
    ), listed AS (
        SELECT app_id, site_id, day_id, by, array_agg(page_id ORDER BY place) AS page_ids, array_agg(number ORDER BY place) AS numbers
        FROM ordered
        WHERE place <= 1000
        GROUP BY app_id, site_id, day_id, by
    )
    INSERT INTO tops (app_id, site_id, day_id, by, page_ids, numbers)
    SELECT l.app_id, l.site_id, l.day_id, l.by, l.page_ids, l.numbers
    FROM listed AS l
    ON CONFLICT DO NOTHING;
END
$$;

COMMENT ON FUNCTION make_tops(integer, integer) IS 'Makes the missing lists of top pages of closed days: SELECT make_tops(only_day => 20190629).';

REVOKE ALL ON FUNCTION make_tops(integer, integer) FROM PUBLIC;
