-- The sums of a closed day are those of its lists; pages are read of days that have none. Pages are
-- looked for in this folder alone, and only if something was counted there: what was counted in the
-- folder, less what was in its folders.
CREATE FUNCTION report.folders(app text, site text, folder text, from_day integer, to_day integer, days_before integer DEFAULT 0, n integer DEFAULT 30)
RETURNS TABLE (path text, is_folder boolean, pv bigint, hot bigint, pv_before bigint, hot_before bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    here text := folders.folder;
BEGIN
    IF here !~ '^/(.*/)?$' THEN
        RAISE EXCEPTION 'folder: % does not begin and end with a slash', here USING ERRCODE = '22023';
    END IF;
    IF n NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION 'n: % is not between 1 and 1000', n USING ERRCODE = '22023';
    END IF;
    RETURN QUERY
    WITH site AS MATERIALIZED (
        SELECT s.id, s.app_id
        FROM apps AS a
        JOIN pages AS s ON s.app_id = a.id AND s.key = page_key(as_stored(folders.site)) AND s.site_id IS NULL
        WHERE a.name = folders.app
    ), ranges (is_before, a_day, z_day) AS MATERIALIZED (
        SELECT false, from_day, to_day
        UNION ALL
        SELECT true, days_earlier(nullif(from_day, 0), days_before), days_earlier(to_day, days_before)
        WHERE days_before > 0
    ), counted AS MATERIALIZED (
        SELECT r.is_before, d.day_id, t.is_listed
        FROM ranges AS r
        JOIN days AS d ON d.page_id = (SELECT s.id FROM site AS s) AND d.day_id BETWEEN r.a_day AND r.z_day
        CROSS JOIN LATERAL (
            SELECT count(*) = 2 AS is_listed
            FROM site AS s
            JOIN tops AS t ON t.app_id = s.app_id AND t.site_id = s.id AND t.day_id = d.day_id
            WHERE t.by IN ('pv', 'hot')
              AND t.folders IS NOT NULL
        ) AS t
    ), listed AS MATERIALIZED (
        SELECT c.is_before, f.folder,
               coalesce(sum(f.number) FILTER (WHERE t.by = 'pv'), 0)  AS pv,
               coalesce(sum(f.number) FILTER (WHERE t.by = 'hot'), 0) AS hot
        FROM counted AS c
        CROSS JOIN site AS s
        JOIN tops AS t ON t.app_id = s.app_id AND t.site_id = s.id AND t.day_id = c.day_id AND t.by IN ('pv', 'hot')
        CROSS JOIN LATERAL unnest(t.folders, t.folder_numbers) AS f (folder, number)
        WHERE c.is_listed
          AND starts_with(f.folder, here)
          AND strpos(substr(f.folder, length(here) + 1), '/') IN (0, length(f.folder) - length(here))
        GROUP BY c.is_before, f.folder
    ), pages_below AS MATERIALIZED (
        SELECT p.id, p.folder
        FROM pages AS p
        WHERE p.site_id = (SELECT s.id FROM site AS s)
          AND p.folder >= here
          AND p.folder < here || U&'\+10FFFF'
    ), direct AS MATERIALIZED ( -- of the pages in each folder, on the other days
        SELECT c.is_before, p.folder, sum(d.pv) AS pv, sum(d.hot) AS hot
        FROM (SELECT c.is_before, c.day_id FROM counted AS c WHERE NOT c.is_listed OFFSET 0) AS c
        JOIN days AS d        ON d.site_id = (SELECT s.id FROM site AS s) AND d.day_id = c.day_id
        JOIN pages_below AS p ON p.id = d.page_id
        GROUP BY c.is_before, p.folder
    ), summed AS MATERIALIZED (
        SELECT b.folder,
               coalesce(sum(b.pv)  FILTER (WHERE NOT b.is_before), 0) AS pv,
               coalesce(sum(b.hot) FILTER (WHERE NOT b.is_before), 0) AS hot,
               coalesce(sum(b.pv)  FILTER (WHERE b.is_before), 0)     AS pv_before,
               coalesce(sum(b.hot) FILTER (WHERE b.is_before), 0)     AS hot_before
        FROM (
            SELECT l.is_before, l.folder, l.pv, l.hot
            FROM listed AS l
            UNION ALL
            SELECT d.is_before, here, d.pv, d.hot
            FROM direct AS d
            UNION ALL
            SELECT d.is_before, left(d.folder, length(here) + strpos(substr(d.folder, length(here) + 1), '/')), d.pv, d.hot
            FROM direct AS d
            WHERE d.folder <> here
        ) AS b
        GROUP BY b.folder
    ), below AS MATERIALIZED (
        SELECT s.folder AS path, true AS is_folder, s.pv, s.hot, s.pv_before, s.hot_before
        FROM summed AS s
        WHERE s.folder <> here
        ORDER BY s.pv DESC, s.pv_before DESC, s.folder COLLATE "C"
        LIMIT n
    ), some_here AS MATERIALIZED (
        SELECT sum(CASE WHEN s.folder = here THEN s.hot + s.hot_before ELSE -s.hot - s.hot_before END) > 0 AS there_are
        FROM summed AS s
    ), candidates AS MATERIALIZED (
        SELECT p.id
        FROM pages_below AS p
        JOIN counters AS c ON c.page_id = p.id
        WHERE (SELECT h.there_are FROM some_here AS h)
          AND p.folder = here
        ORDER BY c.pv DESC, p.id
        LIMIT 1000
    ), chosen AS MATERIALIZED (
        SELECT d.page_id, sum(d.pv) AS pv, sum(d.hot) AS hot
        FROM days AS d
        WHERE d.page_id = ANY (ARRAY(SELECT c.id FROM candidates AS c))
          AND d.day_id BETWEEN from_day AND to_day
        GROUP BY d.page_id
        ORDER BY sum(d.pv) DESC, d.page_id
        LIMIT n
    ), pages_here AS MATERIALIZED (
        SELECT substr(p.uri, strpos(p.uri, '/')) AS path, false AS is_folder, c.pv, c.hot, coalesce(b.pv, 0) AS pv_before, coalesce(b.hot, 0) AS hot_before
        FROM chosen AS c
        JOIN pages AS p ON p.id = c.page_id
        CROSS JOIN LATERAL (
            SELECT sum(d.pv) AS pv, sum(d.hot) AS hot
            FROM ranges AS r
            JOIN days AS d ON d.page_id = c.page_id AND d.day_id BETWEEN r.a_day AND r.z_day
            WHERE r.is_before
        ) AS b
    ), shown AS MATERIALIZED (
        SELECT * FROM below
        UNION ALL
        SELECT * FROM pages_here
    ), others AS (
        SELECT h.pv - coalesce(sum(o.pv), 0)               AS pv,
               h.hot - coalesce(sum(o.hot), 0)             AS hot,
               h.pv_before - coalesce(sum(o.pv_before), 0) AS pv_before,
               h.hot_before - coalesce(sum(o.hot_before), 0) AS hot_before
        FROM summed AS h
        LEFT JOIN shown AS o ON true
        WHERE h.folder = here
        GROUP BY h.pv, h.hot, h.pv_before, h.hot_before
    )
    SELECT f.path, f.is_folder, f.pv::bigint, f.hot::bigint, f.pv_before::bigint, f.hot_before::bigint
    FROM (
        SELECT * FROM shown
        UNION ALL
        SELECT '', false, o.pv, o.hot, o.pv_before, o.hot_before
        FROM others AS o
        WHERE o.hot + o.hot_before > 0
    ) AS f
    ORDER BY f.path = '', f.pv DESC, f.pv_before DESC, f.path COLLATE "C";
END
$$;

COMMENT ON FUNCTION report.folders(text, text, text, integer, integer, integer, integer) IS 'What is in a folder of a site: the n folders with the highest pv in a range of days, n pages likewise (of the 1,000 that have been visited most in all), and, without a path, what the others have together; beside that so many days before (0 where days_before is). pv and hot of a folder are the sums of its pages. SELECT * FROM report.folders(''demo'', ''example.com'', ''/docs/'', 20190601, 20190630, 35).';

REVOKE ALL ON FUNCTION report.folders(text, text, text, integer, integer, integer, integer) FROM PUBLIC;
