-- A target with an offset has totals even before its first visit, when it has no row in pages.
CREATE FUNCTION report.totals(app text, target text)
RETURNS TABLE (pv bigint, uv bigint, hot bigint, counted_pv bigint, counted_uv bigint, counted_hot bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER -- an SQL function would be planned again for every page
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

COMMENT ON FUNCTION report.totals(text, text) IS 'All-time totals of a page or site as shown, and the part of them that was counted here. The rest is from offsets (imported numbers). The offset of uv is also added to ranks. SELECT * FROM report.totals(''demo'', ''example.com'').';

REVOKE ALL ON FUNCTION report.totals(text, text) FROM PUBLIC;
