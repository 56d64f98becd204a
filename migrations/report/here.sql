CREATE FUNCTION report.here(app text, site text) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    SELECT count(DISTINCT v.visitor)
    FROM pages AS p
    JOIN here AS h ON h.site_id = p.id
    CROSS JOIN LATERAL unnest(h.visitors) AS v (visitor)
    WHERE p.app_id = (SELECT a.id FROM apps AS a WHERE a.name = here.app)
      AND p.key = page_key(as_stored(here.site))
      AND p.site_id IS NULL
      AND h.came_at > now() - here_lasts()
$$;

COMMENT ON FUNCTION report.here(text, text) IS 'Visitors of a site within the last five minutes, each once, counted by any instance: SELECT report.here(''demo'', ''example.com'').';

REVOKE ALL ON FUNCTION report.here(text, text) FROM PUBLIC;
