-- Checks of apps as a whole, of people, and of counted lines (see verify_targets.sql). Offenders (wrong numbers) have the
-- app's negated id in place of a target.

CREATE FUNCTION verify_apps(app text)
RETURNS TABLE (measure text, held bigint, behind bigint, broken bigint, offenders bigint[])
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    -- Closed days (under app 0), and the days from which apps keep visits, must not be later than the current day in the time
    -- zone where days begin first. Otherwise verify would not read the rows of earlier days.
    RETURN QUERY
    WITH checks AS (
        SELECT 'kept ahead' AS measure, -k.app_id AS target, k.from_day AS day_id
        FROM visits_kept AS k
        JOIN apps AS a ON a.id = k.app_id
        WHERE app IN ('', a.name)
        UNION ALL
        SELECT 'closed ahead', 0, c.day_id
        FROM closed_days AS c
    )
    SELECT c.measure::text                                   AS measure,
           count(*)                                          AS held,
           0::bigint                                         AS behind,
           count(*) FILTER (WHERE c.day_id > latest_day())   AS broken,
           first_offenders((array_agg(ARRAY[c.target, c.day_id, 0, c.day_id, 0, latest_day()])
                         FILTER (WHERE c.day_id > latest_day()))::bigint[]) AS offenders
    FROM checks AS c
    GROUP BY c.measure;

    -- Current visitors must be at sites that exist, and pages of history must belong to the site of their row in
    -- history_days. Instances may still write to the table here while an app is deleted or moved away. So rows of missing
    -- sites are allowed until a day after an app was deleted or moved away.
    RETURN QUERY
    WITH checks AS (
        SELECT 'site of here' AS measure, h.site_id AS target, 0 AS day_id, p.id IS NULL OR p.site_id IS NOT NULL AS wrong
        FROM here AS h
        LEFT JOIN pages AS p ON p.id = h.site_id
        LEFT JOIN apps AS a  ON a.id = p.app_id
        WHERE app IN ('', a.name)
          AND (p.id IS NOT NULL
               OR NOT EXISTS (SELECT FROM changes AS c WHERE c.what = 'app' AND (c.is_now = 'deleted' OR starts_with(c.is_now, 'moved to the cell '))
                           AND c.at > h.came_at - interval '1 day'))
        UNION ALL
        SELECT 'site of history', -d.app_id, d.day_id, h.uri <> d.site AND NOT starts_with(h.uri, d.site || '/')
        FROM history AS h
        JOIN history_days AS d ON d.id = h.day
        JOIN apps AS a         ON a.id = d.app_id
        WHERE app IN ('', a.name)
    )
    SELECT c.measure::text                      AS measure,
           count(*)                             AS held,
           0::bigint                            AS behind,
           count(*) FILTER (WHERE c.wrong)      AS broken,
           first_offenders((array_agg(ARRAY[c.target, c.day_id, 0, 1, 0, 0])
                         FILTER (WHERE c.wrong))::bigint[]) AS offenders
    FROM checks AS c
    GROUP BY c.measure;
END
$$;

COMMENT ON FUNCTION verify_apps(text) IS 'Finds days later than today in every time zone, and rows with a missing or wrong site, in one app or in all.';

-- A row's height is greater than the heights of rows that lead to it, and at most 4. So no id leads to itself, and no chain
-- of links has more than four steps. Therefore each row is compared only with the next row in its chain, which is found by
-- its key. A row of the previous period is not compared if its id has a row in the present period.
CREATE FUNCTION verify_people(app text, of_period smallint, after_app integer, after inet, until_app integer, until inet)
RETURNS TABLE (measure text, held bigint, behind bigint, broken bigint, offenders bigint[])
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY
    WITH found AS MATERIALIZED (
        SELECT p.app_id, p.height, p.id, p.person, p.tag_ids, (SELECT people_period()) AS open, -- the subquery is evaluated only once
               p.period = (SELECT people_period())
                   OR NOT EXISTS (SELECT FROM people AS o WHERE o.period = 1 - p.period AND o.app_id = p.app_id AND o.id = p.id) AS holds
        FROM people AS p
        WHERE p.period = of_period
          AND (p.app_id, p.id) > (after_app, after)
          AND (p.app_id, p.id) <= (until_app, until)
          AND app IN ('', (SELECT a.name FROM apps AS a WHERE a.id = p.app_id))
    ), apart AS (
        SELECT f.app_id, count(*) AS rows,
               count(*) FILTER (WHERE f.person IS NOT NULL AND f.holds AND coalesce(next.height, 0) <= f.height) AS lost,
               count(*) FILTER (WHERE f.height NOT BETWEEN 0 AND 4 - (f.person IS NOT NULL)::integer
                   OR f.tag_ids IS NOT NULL AND (f.person IS NOT NULL OR cardinality(f.tag_ids) NOT BETWEEN 1 AND 8)) AS strange,
               count(*) FILTER (WHERE f.tag_ids IS NOT NULL
                   AND cardinality(f.tag_ids) <> (SELECT count(DISTINCT t.name) FROM tags AS t WHERE t.app_id = f.app_id AND t.id = ANY (f.tag_ids))) AS untagged
        FROM found AS f
        LEFT JOIN LATERAL (
            SELECT n.height
            FROM people AS n
            WHERE n.period IN (0, 1)
              AND n.app_id = f.app_id
              AND n.id = f.person
            ORDER BY n.period = f.open DESC
            LIMIT 1
        ) AS next ON f.person IS NOT NULL
        GROUP BY f.app_id
    ), checks AS (
        SELECT p.app_id, p.rows, m.measure, m.broken
        FROM apart AS p
        CROSS JOIN LATERAL (
            SELECT unnest(ARRAY['people', 'people rows', 'people tags', 'people apps']::text[]) AS measure,
                   unnest(ARRAY[p.lost, p.strange, p.untagged,
                                CASE WHEN EXISTS (SELECT FROM apps AS a WHERE a.id = p.app_id AND a.visitor = 'id') THEN 0 ELSE p.rows END]::bigint[]) AS broken
        ) AS m
    )
    SELECT c.measure::text                          AS measure,
           sum(c.rows)::bigint                      AS held,
           0::bigint                                AS behind,
           sum(c.broken)::bigint                    AS broken,
           first_offenders((array_agg(ARRAY[-c.app_id, 0, 0, c.broken, 0, 0])
                         FILTER (WHERE c.broken > 0))::bigint[]) AS offenders
    FROM checks AS c
    GROUP BY c.measure;
END
$$;

COMMENT ON FUNCTION verify_people(text, smallint, integer, inet, integer, inet) IS 'Checks the rows of the table people in a range of keys.';

CREATE FUNCTION verify_lines(app text, after_app integer, after_hour integer, until_app integer, until_hour integer)
RETURNS TABLE (measure text, held bigint, behind bigint, broken bigint, offenders bigint[])
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY
    WITH hours AS (
        SELECT u.app_id, u.hour, u.server, u.version, u.gone
        FROM (
            SELECT h.app_id, h.hour, unnest(h.servers) AS server, unnest(h.versions) AS version, unnest(h.gone) AS gone
            FROM log_hours AS h
            WHERE (h.app_id, h.hour) > (after_app, after_hour)
              AND (h.app_id, h.hour) <= (until_app, until_hour)
        ) AS u
    ), blocks AS (
        SELECT b.app_id, b.hour, b.server, sum(b.lines) AS lines, min(b.first) AS first, max(b.first + b.lines) AS behind, bool_and(b.follows) AS follow
        FROM (
            SELECT l.app_id, l.hour, l.server, l.first, octet_length(l.hashes) / 8 AS lines,
                   l.first = lag(l.first + octet_length(l.hashes) / 8, 1, l.first) OVER (PARTITION BY l.app_id, l.hour, l.server ORDER BY l.first) AS follows
            FROM counted_lines AS l
            WHERE (l.app_id, l.hour) > (after_app, after_hour)
              AND (l.app_id, l.hour) <= (until_app, until_hour)
        ) AS b
        GROUP BY b.app_id, b.hour, b.server
    ), checks AS (
        SELECT a.id AS app_id, coalesce(h.hour, b.hour) AS hour, coalesce(h.version - h.gone, 0) AS should, coalesce(b.lines, 0)::bigint AS lines,
               CASE
                   WHEN h.app_id IS NULL OR h.version < h.gone THEN true
                   WHEN b.app_id IS NULL THEN h.version > h.gone
                   ELSE NOT b.follow OR b.first <> h.gone OR b.behind <> h.version
               END AS wrong
        FROM hours AS h
        FULL JOIN blocks AS b ON b.app_id = h.app_id AND b.hour = h.hour AND b.server = h.server
        JOIN apps AS a ON a.id = coalesce(h.app_id, b.app_id)
        WHERE app IN ('', a.name)
    )
    SELECT 'lines'::text                                     AS measure,
           count(*)                                          AS held,
           0::bigint                                         AS behind,
           count(*) FILTER (WHERE c.wrong)                   AS broken,
           first_offenders((array_agg(ARRAY[-c.app_id, to_char(date '1970-01-01' + c.hour / 24, 'YYYYMMDD')::bigint, 0, c.lines, c.should, c.should])
                         FILTER (WHERE c.wrong))::bigint[]) AS offenders
    FROM checks AS c;
END
$$;

COMMENT ON FUNCTION verify_lines(text, integer, integer, integer, integer) IS 'Compares the counted lines of each server in a range of hours (log_hours) with the blocks of their hashes. The blocks must follow each other without a gap.';

-- A day has at most as many lines as hot of the app's sites on this day and both adjacent days. The adjacent days are
-- included, because the time zones of logs and apps may differ. 0.2 may have recorded lines without counting them. So days up
-- to a day after the last line that 0.2 counted are left out.
CREATE FUNCTION verify_line_days(app text)
RETURNS TABLE (measure text, held bigint, behind bigint, broken bigint, offenders bigint[])
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY
    WITH lines AS (
        SELECT u.app_id, u.day, sum(u.lines)::bigint AS lines
        FROM (
            SELECT h.app_id, date '1970-01-01' + h.hour / 24 AS day, unnest(h.versions) - unnest(h.gone) AS lines
            FROM log_hours AS h
            JOIN apps AS a ON a.id = h.app_id
            WHERE app IN ('', a.name)
              AND a.deleted_at IS NULL
        ) AS u
        WHERE NOT EXISTS (SELECT FROM logs AS l WHERE l.app_id = u.app_id AND coalesce(l.last_at, 'infinity') > u.day - interval '1 day')
        GROUP BY u.app_id, u.day
    ), checks AS (
        SELECT l.app_id, l.day, l.lines, (
            SELECT coalesce(sum(d.hot), 0)::bigint
            FROM pages AS p
            JOIN days AS d ON d.page_id = p.id
            WHERE p.app_id = l.app_id
              AND p.site_id IS NULL
              AND d.day_id BETWEEN to_char(l.day - 1, 'YYYYMMDD')::integer AND to_char(l.day + 1, 'YYYYMMDD')::integer
        ) AS hot
        FROM lines AS l
    )
    SELECT 'lines of days'::text                             AS measure,
           count(*)                                          AS held,
           0::bigint                                         AS behind,
           count(*) FILTER (WHERE c.lines > c.hot)           AS broken,
           first_offenders((array_agg(ARRAY[-c.app_id, to_char(c.day, 'YYYYMMDD')::bigint, 0, c.lines, 0, c.hot])
                         FILTER (WHERE c.lines > c.hot))::bigint[]) AS offenders
    FROM checks AS c;
END
$$;

COMMENT ON FUNCTION verify_line_days(text) IS 'Checks that no day has more counted lines than hot of the app''s sites on this day and both adjacent days.';
