-- Follows the links of all visitors to their persons together, one step at a time, so that the planner knows the number of
-- rows to join. A row of the present period takes precedence over a row of the previous period.
CREATE FUNCTION report.people(app text, target text, name text)
RETURNS TABLE (value text, visitors bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
SET plan_cache_mode = force_custom_plan -- plans with the actual numbers of visitors and people
AS $$
#variable_conflict use_column
DECLARE
    open  smallint := people_period();
    other smallint := 1 - open;
    page  bigint;
    of    integer; -- the app
    uv    bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM report.tag_names(people.app) AS n WHERE n.name = people.name) THEN
        RAISE EXCEPTION 'name: app % has no tag %: report.tag_names(''%'') lists its tags', people.app, people.name, people.app USING ERRCODE = '22023';
    END IF;
    SELECT p.id, a.id, c.uv
    INTO page, of, uv
    FROM apps AS a
    JOIN pages AS p    ON p.app_id = a.id AND p.key = page_key(as_stored(people.target))
    JOIN counters AS c ON c.page_id = p.id
    WHERE a.name = people.app;
    RETURN QUERY
    WITH RECURSIVE way (id, tag_ids, steps) AS (
        SELECT v.ip, NULL::integer[], 0
        FROM visitors AS v
        WHERE v.page_id = page
        UNION ALL
        SELECT coalesce(o.person, c.person), coalesce(o.tag_ids, c.tag_ids), w.steps + 1
        FROM way AS w
        LEFT JOIN people AS o ON o.period = open AND o.app_id = of AND o.id = w.id
        LEFT JOIN people AS c ON c.period = other AND c.app_id = of AND c.id = w.id AND o.id IS NULL
        WHERE w.steps < 5 -- four steps, and the row of the person
          AND coalesce(o.id, c.id) IS NOT NULL
    ), known AS (
        SELECT t.value, count(*) AS visitors
        FROM way AS w
        CROSS JOIN LATERAL unnest(w.tag_ids) AS u (tag_id)
        JOIN tags AS t ON t.id = u.tag_id
        WHERE t.name = people.name
        GROUP BY t.value
    )
    SELECT s.value, s.visitors
    FROM (
        SELECT k.value, k.visitors, false AS is_rest
        FROM known AS k
        UNION ALL
        SELECT '(none)', uv - coalesce(sum(k.visitors), 0)::bigint, true
        FROM known AS k
        HAVING page IS NOT NULL
    ) AS s
    ORDER BY s.is_rest, s.visitors DESC, s.value;
END
$$;

COMMENT ON FUNCTION report.people(text, text, text) IS 'Visitors of a page or site by a tag of the persons to whom they belong now: each value with its number of visitors, as counted in uv. The last row, (none), has all other visitors, including erased and forgotten ones. Reads all visitors: a million takes seconds. SELECT * FROM report.people(''demo'', ''example.com'', ''age'').';

REVOKE ALL ON FUNCTION report.people(text, text, text) FROM PUBLIC;
