-- Each step of the recursion is one index lookup for the next name. It skips all values of a name,
-- because there may be a hundred thousand.
CREATE FUNCTION report.tag_names(app text)
RETURNS TABLE (name text, has_values boolean)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    WITH RECURSIVE stored (app_id, name) AS (
        SELECT a.id, (SELECT min(t.name) FROM tags AS t WHERE t.app_id = a.id)
        FROM apps AS a
        WHERE a.name = tag_names.app
        UNION ALL
        SELECT s.app_id, (SELECT min(t.name) FROM tags AS t WHERE t.app_id = s.app_id AND t.name > s.name)
        FROM stored AS s
        WHERE s.name IS NOT NULL
    ), counted AS (
        SELECT c.name, c.place
        FROM apps AS a
        CROSS JOIN LATERAL unnest(a.tags) WITH ORDINALITY AS c (name, place)
        WHERE a.name = tag_names.app
    )
    SELECT coalesce(c.name, s.name), s.name IS NOT NULL
    FROM counted AS c
    FULL JOIN (SELECT s.name FROM stored AS s WHERE s.name IS NOT NULL) AS s ON s.name = c.name
    ORDER BY c.place, s.name
$$;

COMMENT ON FUNCTION report.tag_names(text) IS 'Names of the tags that an app counts, or has counted before. has_values: some visit had a value. SELECT * FROM report.tag_names(''demo'').';

REVOKE ALL ON FUNCTION report.tag_names(text) FROM PUBLIC;
