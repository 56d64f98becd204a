-- What visitors of a site did, and how many got how far. An event is its app's, since whoever tells of
-- it need name no site: it counts for a site on the days on which the visitor was there.
--
-- All are joined by hash, as those of filters are.

CREATE FUNCTION report.events_where(app text, site text, from_day integer, to_day integer, conditions text[] DEFAULT '{}', n integer DEFAULT 10)
RETURNS TABLE (event text, visitors bigint, of_visitors bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
SET enable_nestloop = off
SET enable_mergejoin = off
SET jit = off
SET work_mem = '32MB'
AS $$
DECLARE
    f      record;
    events bigint[] := ARRAY(
        SELECT d.page_id
        FROM days AS d
        WHERE d.site_id = (SELECT p.id FROM pages AS p WHERE p.app_id = (SELECT a.id FROM apps AS a WHERE a.name = app) AND p.key = page_key('(events)') AND p.site_id IS NULL)
          AND d.day_id BETWEEN from_day AND to_day
        GROUP BY d.page_id
        ORDER BY sum(d.pv) DESC
        LIMIT 10001);
BEGIN
    IF cardinality(events) > 10000 THEN
        PERFORM filter_fault('these are more than 10,000 events: choose fewer days');
    ELSIF events = '{}' THEN -- of whatever days
        PERFORM filter_query(app, site, 99991231, 99991231, conditions, true, false);
        RETURN;
    END IF;
    f := filter_query(app, site, from_day, to_day, conditions, true, false);
    RETURN QUERY EXECUTE f.query || format(', a AS MATERIALIZED (%s)
        SELECT substr(p.uri, 10), c.visitors, a.visitors
        FROM (
            SELECT d.page_id, count(*) AS visitors
            FROM (
                SELECT e.page_id, f.ip
                FROM visits AS e
                JOIN f ON f.day_id = e.day_id AND f.ip = e.ip
                WHERE e.page_id = ANY (%L)
                  AND e.day_id BETWEEN %s AND %s
                  AND (SELECT g.known FROM g)
                GROUP BY e.page_id, f.ip
            ) AS d
            GROUP BY d.page_id
        ) AS c
        JOIN pages AS p ON p.id = c.page_id
        CROSS JOIN a
        ORDER BY c.visitors DESC, c.page_id
        LIMIT %s',
        CASE
            WHEN conditions = '{}' AND f.site_id IS NOT NULL
            THEN format('SELECT s.uniques AS visitors FROM targets_sums(ARRAY[%s], %s, %s) AS s', f.site_id, from_day, to_day)
            ELSE 'SELECT count(*) AS visitors FROM (SELECT FROM f GROUP BY f.ip) AS v'
        END, events, from_day, to_day, n);
END
$$;

COMMENT ON FUNCTION report.events_where(text, text, integer, integer, text[], integer) IS 'The first n events that visitors of a site did in a range of days, on days on which all conditions hold for them (see report.visitors_where): how many visitors, each once, and of how many in all. An event may have been done anywhere in the app. SELECT * FROM report.events_where(''demo'', ''example.com'', 20190601, 20190630, ARRAY[''source:google'']);';

REVOKE ALL ON FUNCTION report.events_where(text, text, integer, integer, text[], integer) FROM PUBLIC;
