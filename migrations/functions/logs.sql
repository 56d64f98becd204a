-- Lines of access logs that were counted. Each line counts only once, even if its file is imported again.

-- Records the lines that a batch counts, if the lines' hours still have the versions that the import has read. Each
-- server has a version in each hour: it rises by 1 for each counted line, and when lines are forgotten. expected is the
-- sum of the versions of the compared servers. These are the named server and the unnamed server, or all servers if no
-- server is named. The values at one index of the arrays belong to one hour, sorted by hour.
CREATE FUNCTION count_lines(app integer, server text, hours integer[], expected bigint[], latest timestamptz[], hashes bytea[]) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
SET enable_seqscan = off -- the plan may be made while the tables are small, and used later
AS $$
DECLARE
    most constant integer := 1520; -- bytes of a block: five blocks fit into a page
BEGIN
    INSERT INTO log_hours (app_id, hour)
    SELECT app, n.hour
    FROM unnest(hours) AS n (hour)
    ORDER BY n.hour
    ON CONFLICT DO NOTHING;
    PERFORM
    FROM log_hours AS h
    WHERE h.app_id = app
      AND h.hour = ANY (hours)
    ORDER BY h.hour
    FOR UPDATE;
    -- The locks keep other imports from changing these rows until the transaction ends.
    IF EXISTS (
        SELECT
        FROM unnest(hours, expected) AS n (hour, version)
        JOIN log_hours AS h ON h.app_id = app AND h.hour = n.hour
        WHERE n.version <> (SELECT coalesce(sum(s.version), 0)
                            FROM unnest(h.servers, h.versions) AS s (name, version)
                            WHERE server = '' OR s.name IN ('', server))
    ) THEN
        RAISE EXCEPTION 'another import has counted lines of these hours'
            USING ERRCODE = 'FF004', HINT = 'Decide again which lines count.';
    END IF;
    -- The new hashes continue the last block of their hour and server, unless it is full. held is the number of bytes in
    -- this block. start is the first byte of each block, relative to the first new hash. ON CONFLICT finds the last
    -- block by the key: an UPDATE would read all of the app's blocks, by a plan that was made when there were few.
    INSERT INTO counted_lines AS l (app_id, hour, server, first, hashes)
    SELECT app, n.hour, count_lines.server, n.version + start / 8, substr(n.hashes, start + 1, most)
    FROM (
        SELECT u.hour, u.hashes, coalesce(h.versions[array_position(h.servers, server)], 0) AS version,
               CASE WHEN b.held < most THEN b.held ELSE 0 END AS held
        FROM unnest(hours, hashes) AS u (hour, hashes)
        JOIN log_hours AS h ON h.app_id = app AND h.hour = u.hour
        LEFT JOIN LATERAL (
            SELECT octet_length(o.hashes) AS held
            FROM counted_lines AS o
            WHERE o.app_id = app
              AND o.hour = u.hour
              AND o.server = count_lines.server
            ORDER BY o.first DESC
            LIMIT 1
        ) AS b ON true
    ) AS n
    CROSS JOIN LATERAL generate_series(-n.held, octet_length(n.hashes) - 1, most) AS start
    ON CONFLICT ON CONSTRAINT counted_lines_pkey DO UPDATE
        SET hashes = l.hashes || excluded.hashes;
    UPDATE log_hours AS h
    SET servers[n.place]  = server,
        versions[n.place] = coalesce(h.versions[n.place], 0) + n.lines,
        gone[n.place]     = coalesce(h.gone[n.place], 0),
        latest[n.place]   = greatest(h.latest[n.place], n.latest)
    FROM (
        SELECT a.hour, octet_length(a.hashes) / 8 AS lines, a.latest,
               coalesce(array_position(o.servers, server), cardinality(o.servers) + 1) AS place
        FROM unnest(hours, hashes, count_lines.latest) AS a (hour, hashes, latest)
        JOIN log_hours AS o ON o.app_id = app AND o.hour = a.hour
    ) AS n
    WHERE h.app_id = app
      AND h.hour = n.hour;
END
$$;

COMMENT ON FUNCTION count_lines(integer, text, integer[], bigint[], timestamptz[], bytea[]) IS 'Records lines of access logs as counted, in the transaction that counts them. Fails with SQLSTATE FF004 if other lines of their hours were counted or forgotten since the import decided.';

-- Also deletes the app's rows of read_logs, so that the next import reads all files again.
CREATE FUNCTION forget_lines(app integer, of_server text, from_hour integer, to_hour integer) RETURNS bigint
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
DECLARE
    forgotten bigint;
BEGIN
    PERFORM
    FROM log_hours AS h
    WHERE h.app_id = app
      AND h.hour BETWEEN from_hour AND to_hour
    ORDER BY h.hour
    FOR UPDATE;
    WITH blocks AS (
        DELETE FROM counted_lines AS l
        WHERE l.app_id = app
          AND l.hour BETWEEN from_hour AND to_hour
          AND (of_server IS NULL OR l.server = of_server)
        RETURNING octet_length(l.hashes) / 8 AS lines
    )
    SELECT coalesce(sum(b.lines), 0)
    INTO forgotten
    FROM blocks AS b;
    UPDATE log_hours AS h
    SET versions = n.versions,
        gone     = n.gone
    FROM (
        SELECT o.hour, array_agg(s.version + s.goes::integer ORDER BY s.place)                            AS versions,
               array_agg(CASE WHEN s.goes THEN s.version + 1 ELSE s.gone END ORDER BY s.place) AS gone
        FROM log_hours AS o
        CROSS JOIN LATERAL (
            SELECT u.version, u.gone, u.place, u.version > u.gone AND (of_server IS NULL OR u.name = of_server) AS goes
            FROM unnest(o.servers, o.versions, o.gone) WITH ORDINALITY AS u (name, version, gone, place)
        ) AS s
        WHERE o.app_id = app
          AND o.hour BETWEEN from_hour AND to_hour
        GROUP BY o.hour
        HAVING bool_or(s.goes)
    ) AS n
    WHERE h.app_id = app
      AND h.hour = n.hour;
    DELETE FROM read_logs AS r
    WHERE r.app_id = app;
    RETURN forgotten;
END
$$;

COMMENT ON FUNCTION forget_lines(integer, text, integer, integer) IS 'Forgets which lines of logs were counted in some hours, for one server or, if of_server is null, for all servers. Returns the number of these lines.';

CREATE FUNCTION end_import(app integer, run text) RETURNS void
LANGUAGE sql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    DELETE FROM positions AS p
    WHERE p.app_id = app
      AND p.source = 'logs'
      AND p.part = run
      AND p.part LIKE 'run %'
$$;

COMMENT ON FUNCTION end_import(integer, text) IS 'Deletes the position of an import that has ended.';

REVOKE ALL ON FUNCTION end_import(integer, text) FROM PUBLIC;

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

COMMENT ON FUNCTION make_log_key(integer, bytea) IS 'Returns the random key of an app''s logs, or null if the app does not exist. Stores fresh if the app has no key yet.';

REVOKE ALL ON FUNCTION make_log_key(integer, bytea) FROM PUBLIC;

-- Forgets lines of days that an app no longer keeps, because visits of these days can no longer be counted. The time
-- zones of logs and apps differ by up to 26 hours, so the lines of two earlier days are kept, too. Lines of apps with
-- daily visitors are also forgotten when the key of their day is deleted, because lines cannot be recognized without the
-- key. Also deletes positions of killed imports, and read_logs rows of files that were not read for 90 days.
CREATE FUNCTION forget_log_lines() RETURNS bigint
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
DECLARE
    app       record;
    rows      bigint;
    forgotten bigint := 0;
BEGIN
    DELETE FROM positions AS p
    WHERE p.source = 'logs'
      AND p.part LIKE 'run %'
      AND p.used_at < now() - interval '7 days';
    DELETE FROM read_logs AS r
    WHERE r.read_at < now() - interval '90 days';
    FOR app IN
        SELECT a.id,
               greatest(24 * (day_date(nullif(k.from_day, 0)) - date '1970-01-03'),
                        CASE WHEN a.visitor = 'daily' THEN 24 * (day_date((SELECT min(d.day_id) FROM day_keys AS d)) - date '1970-01-03') END) AS from_hour
        FROM apps AS a
        LEFT JOIN visits_kept AS k ON k.app_id = a.id
        ORDER BY a.id
    LOOP
        PERFORM
        FROM log_hours AS h
        WHERE h.app_id = app.id
          AND h.hour < app.from_hour
        ORDER BY h.hour
        FOR UPDATE;
        DELETE FROM log_hours AS h
        WHERE h.app_id = app.id
          AND h.hour < app.from_hour;
        GET DIAGNOSTICS rows = ROW_COUNT;
        forgotten := forgotten + rows;
        DELETE FROM counted_lines AS l
        WHERE l.app_id = app.id
          AND l.hour < app.from_hour;
        -- Rows that versions 0.2 and 0.1.0 have written:
        DELETE FROM log_samples AS s
        WHERE s.app_id = app.id
          AND s.hour < app.from_hour;
        DELETE FROM log_lines AS s
        WHERE s.app_id = app.id
          AND s.hour < app.from_hour;
        UPDATE logs AS l
        SET tail = '',
            after_lines = CASE WHEN l.after IS NOT NULL THEN ''::bytea END
        WHERE l.app_id = app.id
          AND l.tail <> ''
          AND extract(epoch FROM l.last_at) < 3600.0 * app.from_hour;
    END LOOP;
    RETURN forgotten;
END
$$;

COMMENT ON FUNCTION forget_log_lines() IS 'Forgets lines of access logs of days that their apps no longer keep. Returns the number of hours.';

REVOKE ALL ON FUNCTION forget_log_lines() FROM PUBLIC;
