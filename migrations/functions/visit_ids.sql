-- Deletes some of the ids that arrived more than this many days ago. Ids of the last day always stay. Instances that call this
-- function at the same time skip each other's rows.
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

COMMENT ON FUNCTION forget_visit_ids(integer, integer) IS 'Deletes at most this many ids of visits that arrived more than this many days ago, and returns their number.';

REVOKE ALL ON FUNCTION forget_visit_ids(integer, integer) FROM PUBLIC;
