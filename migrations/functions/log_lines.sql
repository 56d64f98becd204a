-- Letting go of the lines by which logs are found in other files.

-- Of a log whose lines are all of days that the app keeps no longer, none would count again. Clocks
-- of logs and of apps are up to 26 hours apart. A log that an import claims at this moment is left
-- for the next time.
CREATE FUNCTION forget_log_lines() RETURNS bigint
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
DECLARE
    log       bigint;
    forgotten bigint;
BEGIN
    SELECT l.id
    INTO log
    FROM visits_kept AS k
    JOIN logs AS l ON l.app_id = k.app_id
    WHERE k.from_day > 0
      AND l.last_hour < 24 * (day_date(k.from_day) - date '1970-01-03')
      AND EXISTS (SELECT FROM log_lines AS s WHERE s.log_id = l.id)
    LIMIT 1
    FOR UPDATE OF l SKIP LOCKED;
    DELETE FROM log_lines AS s
    WHERE s.log_id = log;
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    RETURN forgotten;
END
$$;

COMMENT ON FUNCTION forget_log_lines() IS 'Forgets the lines of one log, if its app keeps no day of them any longer; how many stretches these were. 0: there is no such log.';

REVOKE ALL ON FUNCTION forget_log_lines() FROM PUBLIC;
