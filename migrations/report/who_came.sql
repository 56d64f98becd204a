-- Reads day by day, because the key of visits finds the next visitor of a day, but not the next visitor of a range. Days
-- whose rows are no longer kept are skipped.
CREATE FUNCTION report.who_came(app text, target text, from_day integer, to_day integer, n integer DEFAULT 100, after_day integer DEFAULT NULL, after inet DEFAULT NULL)
RETURNS TABLE (day_id integer, visitor inet, rank bigint, first_day integer, previous_day integer, last_day integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
SET plan_cache_mode = force_custom_plan -- opens only the partition of the day
AS $$
#variable_conflict use_column
DECLARE
    page   bigint;
    kept   integer; -- the first kept day
    before bigint;  -- uv of the offset (imported numbers), which is added to ranks
    day    integer;
    found  bigint := 0;
    more   bigint;
BEGIN
    IF n NOT BETWEEN 1 AND 10000 THEN
        RAISE EXCEPTION 'n: % is not between 1 and 10000', n USING ERRCODE = '22023';
    END IF;
    SELECT p.id, coalesce(k.from_day, 0), t.uv - t.counted_uv
    INTO page, kept, before
    FROM apps AS a
    JOIN pages AS p            ON p.app_id = a.id AND p.key = page_key(as_stored(who_came.target))
    JOIN totals AS t           ON t.page_id = p.id
    LEFT JOIN visits_kept AS k ON k.app_id = a.id
    WHERE a.name = who_came.app;
    FOR day IN
        SELECT d.day_id
        FROM days AS d
        WHERE d.page_id = page
          AND d.day_id BETWEEN greatest(who_came.from_day, kept) AND least(to_day, after_day)
        ORDER BY d.day_id DESC
    LOOP
        RETURN QUERY
        SELECT v.day_id, v.ip, coalesce(w.rank + before, 0), coalesce(w.first_day, 0), v.previous_day, coalesce(w.last_day, 0)
        FROM visits AS v
        LEFT JOIN visitors AS w ON w.page_id = v.page_id AND w.ip = v.ip
        WHERE v.page_id = page
          AND v.day_id = day
          AND (who_came.after IS NULL OR day < after_day OR v.ip > who_came.after)
        ORDER BY v.ip
        LIMIT n - found;
        GET DIAGNOSTICS more = ROW_COUNT;
        found := found + more;
        EXIT WHEN found = n;
    END LOOP;
END
$$;

COMMENT ON FUNCTION report.who_came(text, text, integer, integer, integer, integer, inet) IS 'The visitors of a page or site on each day of a range, the last day first, at most n rows, as long as rows are kept. For each: the rank as shown, the first and last day, and previous_day, the last earlier day of a visit (0: none, or unknown). To continue, pass the last row as after_day and after. SELECT * FROM report.who_came(''demo'', ''example.com'', 20190601, 20190630).';

REVOKE ALL ON FUNCTION report.who_came(text, text, integer, integer, integer, integer, inet) FROM PUBLIC;
