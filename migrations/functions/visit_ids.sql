-- Forgets some of the ids that came more than so many days ago, but none of the last one. Instances
-- that do so at once pass by each other's.
CREATE FUNCTION forget_visit_ids(days integer, most integer) RETURNS bigint
LANGUAGE sql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    WITH gone AS (
        DELETE FROM visit_ids AS v
        WHERE v.ctid = ANY (ARRAY(
            SELECT old.ctid
            FROM visit_ids AS old
            WHERE old.day_id < days_ago(greatest(forget_visit_ids.days, 1))
            ORDER BY old.day_id
            LIMIT most
            FOR UPDATE SKIP LOCKED
        ))
        RETURNING v.app_id
    )
    SELECT count(*) FROM gone
$$;

COMMENT ON FUNCTION forget_visit_ids(integer, integer) IS 'Deletes ids of visits that came more than so many days ago, so many at most, and returns how many.';

REVOKE ALL ON FUNCTION forget_visit_ids(integer, integer) FROM PUBLIC;
