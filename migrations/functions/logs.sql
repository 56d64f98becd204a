-- How far a log is counted, and letting go of the lines by which it is found in other files.

-- Moves a log on, if it stands where the batch that counts from there on takes it to be, and nobody
-- has found a file with other bytes in its place since. Who else counts the same log waits here for
-- that batch, and then does not find it there any more.
CREATE FUNCTION move_log(app integer, log bigint, look bigint, from_counted bigint, to_counted bigint, hash bytea,
                         lines bigint, last_at timestamptz, tail bytea, after_lines bytea) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    UPDATE logs AS l
    SET counted      = to_counted,
        counted_hash = move_log.hash,
        lines        = move_log.lines,
        last_at      = move_log.last_at,
        tail         = move_log.tail,
        after_lines  = coalesce(move_log.after_lines, l.after_lines)
    WHERE l.id = log
      AND l.app_id = app
      AND l.look = move_log.look
      AND l.counted = from_counted
      AND l.counted <= to_counted;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the log is not where the batch began'
            USING ERRCODE = 'FF004', HINT = 'Go on from where it is.';
    END IF;
END
$$;

COMMENT ON FUNCTION move_log(integer, bigint, bigint, bigint, bigint, bytea, bigint, timestamptz, bytea, bytea) IS 'Moves a log on from so many counted bytes to more, with their keyed hash and its last lines. Fails with SQLSTATE FF004 when it stands elsewhere, or was looked at anew.';

-- The random key of an app's logs, which is made once.
CREATE FUNCTION make_log_key(app integer, fresh bytea) RETURNS bytea
LANGUAGE sql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    UPDATE apps AS a
    SET log_key = coalesce(a.log_key, fresh)
    WHERE a.id = app
    RETURNING a.log_key
$$;

COMMENT ON FUNCTION make_log_key(integer, bytea) IS 'The random key of the logs of an app whose visitors are addresses, made where it has none yet. Null: there is no such app.';

REVOKE ALL ON FUNCTION make_log_key(integer, bytea) FROM PUBLIC;

-- Ends what 0.1.0 keeps of a log, in the transaction in which it was written anew. An import of 0.1.0
-- that still counts it finds no position, and ends.
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

COMMENT ON FUNCTION take_old_log(integer, bigint) IS 'Deletes what 0.1.0 keeps of a log that was written anew: its lines, and its position.';

REVOKE ALL ON FUNCTION take_old_log(integer, bigint) FROM PUBLIC;

-- Lines of days that an app keeps no longer would not count again. Clocks of logs and of apps are up
-- to 26 hours apart. Those of daily apps are of no use without the key of their day.
CREATE FUNCTION forget_log_lines() RETURNS bigint
LANGUAGE sql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    WITH kept AS (
        SELECT a.id AS app_id,
               greatest(24 * (day_date(nullif(k.from_day, 0)) - date '1970-01-03'),
                        CASE WHEN a.visitor = 'daily' THEN 24 * (day_date((SELECT min(d.day_id) FROM day_keys AS d)) - date '1970-01-01') END) AS from_hour
        FROM apps AS a
        LEFT JOIN visits_kept AS k ON k.app_id = a.id
    ), samples AS (
        DELETE FROM log_samples AS s
        USING kept AS k
        WHERE s.app_id = k.app_id
          AND s.hour < k.from_hour
        RETURNING s.log_id
    ), tails AS (
        UPDATE logs AS l
        SET tail = '',
            after_lines = CASE WHEN l.after IS NOT NULL THEN ''::bytea END
        FROM kept AS k
        WHERE l.app_id = k.app_id
          AND l.tail <> ''
          AND extract(epoch FROM l.last_at) < 3600.0 * k.from_hour
        RETURNING l.id
    ), lines AS (
        DELETE FROM log_lines AS s
        USING kept AS k
        WHERE s.app_id = k.app_id
          AND s.hour < k.from_hour
        RETURNING s.log_id
    )
    SELECT (SELECT count(*) FROM samples) + (SELECT count(*) FROM tails) + (SELECT count(*) FROM lines)
$$;

COMMENT ON FUNCTION forget_log_lines() IS 'Forgets lines of logs of days that their apps keep no longer; how many rows these were.';

REVOKE ALL ON FUNCTION forget_log_lines() FROM PUBLIC;
