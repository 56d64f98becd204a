-- Makes the missing sketches (for estimates of visitor numbers) of a day that has ended, for one app or for all apps. Called
-- by close_day(), and after loading an app with visits on closed days.
CREATE FUNCTION make_sketches(only_day integer, only_app integer DEFAULT NULL) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
SET plan_cache_mode = force_custom_plan -- so that the plan leaves out conditions on null parameters
AS $$
BEGIN
    PERFORM FROM epochs WHERE name = 'erasures' FOR UPDATE; -- so that no transaction moves rows between pages while the day is summed up
    WITH hashes AS MATERIALIZED (
        SELECT v.page_id, sha256(inet_send(v.ip)) AS hash
        FROM visits AS v
        WHERE v.day_id = only_day
          AND (only_app IS NULL OR v.page_id IN (SELECT p.id FROM pages AS p WHERE p.app_id = only_app))
    ), entries AS MATERIALIZED (
        SELECT page_id, sketch_entry(hash) AS entry FROM hashes
    ), highest AS (
        SELECT page_id, max(entry) AS entry FROM entries GROUP BY page_id, entry / 64
    )
    INSERT INTO sketches (page_id, day_id, entries)
    SELECT page_id, only_day, array_agg(entry ORDER BY entry)
    FROM highest
    GROUP BY page_id
    ORDER BY page_id
    ON CONFLICT DO NOTHING;
END
$$;

COMMENT ON FUNCTION make_sketches(integer, integer) IS 'Makes missing sketches of a day, of one app or of all: SELECT make_sketches(only_day => 20190629).';

REVOKE ALL ON FUNCTION make_sketches(integer, integer) FROM PUBLIC;
