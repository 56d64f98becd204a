-- For instances of version 0.2, which may run alongside this version during an upgrade, and for their rows. Version 0.4 deletes
-- this file.

-- Fails for an import of version 0.2 that still runs, because such an import does not know which lines this version has
-- counted. Before it fails, the import may add a row to logs. The row is allowed, because a row without counted lines has no
-- effect here. If the row were refused, the import would retry for ten minutes.
CREATE FUNCTION move_log(app integer, log bigint, look bigint, from_counted bigint, to_counted bigint, hash bytea,
                         lines bigint, last_at timestamptz, tail bytea, after_lines bytea) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'Footfall is being upgraded, so this version can no longer import: run the same command of the new version'
        USING ERRCODE = '22023';
END
$$;

COMMENT ON FUNCTION move_log(integer, bigint, bigint, bigint, bigint, bytea, bigint, timestamptz, bytea, bytea) IS 'Always fails, which ends an import of version 0.2.';

-- Deletes the rows that version 0.1.0 has written for a log, in the transaction that writes the log in the new form. An import
-- of 0.1.0 that is still counting this log finds no position, and stops.
CREATE FUNCTION take_old_log(app integer, log bigint) RETURNS void
LANGUAGE sql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    DELETE FROM log_lines AS s
    USING logs AS l
    WHERE s.log_id = log
      AND l.id = log
      AND l.app_id = app
      AND l.counted IS NOT NULL;
    DELETE FROM positions AS p
    USING logs AS l
    WHERE p.app_id = app
      AND p.source = 'logs'
      AND p.part = log::text
      AND l.id = log
      AND l.app_id = app
      AND l.counted IS NOT NULL
$$;

COMMENT ON FUNCTION take_old_log(integer, bigint) IS 'Deletes the lines and the position of a log of version 0.1.0 that was written in the new form.';

REVOKE ALL ON FUNCTION take_old_log(integer, bigint) FROM PUBLIC;

-- The logs of an app that version 0.2 (or 0.1.0) has counted, at least in part. Waits until no batch of these versions runs.
-- 0.1.0 recorded no times, only hours by the clock that the lines show, which may be 12 hours behind UTC.
CREATE FUNCTION closed_logs(app integer)
RETURNS TABLE (server text, told text, counted bigint, claimed bigint, counted_hash bytea, hash bytea, keyed boolean, last_at timestamptz,
               tail bytea, hours integer[])
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM logs AS l WHERE l.app_id = app) THEN
        RETURN;
    END IF;
    EXECUTE format('LOCK TABLE %s IN SHARE MODE', table_of('logs'));
    RETURN QUERY
    SELECT l.server, l.told, coalesce(l.counted, p.next, 0), l.claimed, l.counted_hash,
           CASE WHEN l.skips = '{}' THEN l.hash END, l.counted IS NOT NULL,
           coalesce(l.last_at, to_timestamp(3600.0 * (greatest(l.last_hour, (SELECT max(s.hour) FROM unnest(h.hours) AS s (hour))) + 13) - 1)),
           l.tail, h.hours
    FROM logs AS l
    LEFT JOIN positions AS p ON p.app_id = app AND p.source = 'logs' AND p.part = l.id::text
    CROSS JOIN LATERAL (
        SELECT ARRAY(SELECT s.hour FROM log_samples AS s WHERE s.log_id = l.id
                     UNION SELECT s.hour FROM log_lines AS s WHERE s.log_id = l.id) AS hours
    ) AS h
    WHERE l.app_id = app
      AND coalesce(l.counted, p.next, 0) > 0
    ORDER BY l.id;
END
$$;

COMMENT ON FUNCTION closed_logs(integer) IS 'The logs of an app that version 0.2 has counted. Waits until no batch of 0.2 counts a log.';

REVOKE ALL ON FUNCTION closed_logs(integer) FROM PUBLIC;
