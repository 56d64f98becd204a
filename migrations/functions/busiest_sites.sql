-- If any caller can count for an app, the app can have very many sites. Reports leave out the least
-- visited ones, because they are of no interest.
CREATE FUNCTION busiest_sites(app integer, n integer) RETURNS TABLE (page_id bigint, uri text, pv bigint)
LANGUAGE sql STABLE
SET search_path = footfall, pg_temp
AS $$
    SELECT s.id, s.uri, c.pv
    FROM pages AS s
    JOIN counters AS c ON c.page_id = s.id
    WHERE s.app_id = busiest_sites.app
      AND s.site_id IS NULL
    ORDER BY c.pv DESC, s.id
    LIMIT n
$$;

COMMENT ON FUNCTION busiest_sites(integer, integer) IS 'The n most visited sites of an app, over all time.';
