-- A target that has an offset is there before its first visit.
CREATE FUNCTION report.totals(app text, target text)
RETURNS TABLE (pv bigint, uv bigint, hot bigint, counted_pv bigint, counted_uv bigint, counted_hot bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER -- and not sql, which would plan it again for every page
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT coalesce(t.pv, o.pv), coalesce(t.uv, o.uv), coalesce(t.hot, o.hot),
           coalesce(t.counted_pv, 0), coalesce(t.counted_uv, 0), coalesce(t.counted_hot, 0)
    FROM apps AS a
    LEFT JOIN pages AS p   ON p.app_id = a.id AND p.key = page_key(as_stored(totals.target))
    LEFT JOIN totals AS t  ON t.page_id = p.id
    LEFT JOIN offsets AS o ON o.app_id = a.id AND o.key = page_key(as_stored(totals.target))
    WHERE a.name = totals.app
      AND (t.page_id IS NOT NULL OR o.app_id IS NOT NULL);
END
$$;

COMMENT ON FUNCTION report.totals(text, text) IS 'What is shown of a page or site of all time, and how much of it was counted here; the rest are numbers from elsewhere (offsets), of which uv is added to ranks, too: SELECT * FROM report.totals(''demo'', ''example.com'').';

REVOKE ALL ON FUNCTION report.totals(text, text) FROM PUBLIC;
