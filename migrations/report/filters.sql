-- A filter selects visitors of a site, on each of their days. All functions here accept the same conditions, and all
-- conditions must hold. Site '' means all sites of the app as one. filter_panels() computes most of the results.
CREATE FUNCTION report.visitors_where(app text, site text, from_day integer, to_day integer, conditions text[])
RETURNS TABLE (day_id integer, rank bigint, is_new boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
DECLARE
    f record := filter_query(app, site, from_day, to_day, conditions, true);
BEGIN
    IF f.sites = '{}' THEN
        RETURN;
    ELSIF f.site_id IS NULL THEN
        PERFORM filter_fault('ranks belong to one site: name the site');
    END IF;
    RETURN QUERY SELECT * FROM filter_rows(f.query || format(
        'SELECT f.day_id, w.rank, f.previous_day = 0 FROM f JOIN visitors AS w ON w.page_id = %s AND w.ip = f.ip', f.site_id))
        AS r (day_id integer, rank bigint, is_new boolean);
END
$$;

COMMENT ON FUNCTION report.visitors_where(text, text, integer, integer, text[]) IS 'The visitors of a site in a range of days for whom all conditions hold: a row for each visitor and day, with the visitor''s rank; is_new: it is their first day. At most 8 conditions, each a name and a value: a tag (country:de), one of several values (country:de|at), visitors without the tag (source:(none)), a page that they saw on that day (page:/home), any page below a path (page:/docs/*), an event of that day (event:signup); or new, or returning. ! before a condition means not: !device:phone. A tag called page or event is tag.page. In values %7C, %2A and %21 mean |, * and !. SELECT * FROM report.visitors_where(''demo'', ''example.com'', 20190601, 20190630, ARRAY[''source:google'', ''!page:/pricing'']);';

CREATE FUNCTION report.numbers_where(app text, site text, from_day integer, to_day integer, conditions text[])
RETURNS TABLE (visitors bigint, new_visitors bigint, pv bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    SELECT f.visitors, f.new_visitors, f.pv
    FROM filter_panels(app, site, from_day, to_day, conditions, '{numbers}') AS f
$$;

COMMENT ON FUNCTION report.numbers_where(text, text, integer, integer, text[]) IS 'Visitors of a site in a range of days for whom all conditions hold (see report.visitors_where). visitors: each once; new_visitors: the new ones; pv: the number of their days. If rows of these days were deleted, only a single condition on a tag is possible. Then visitors is null, and new_visitors counts those whose first visit ever had the tag. SELECT * FROM report.numbers_where(''demo'', ''example.com'', 20190601, 20190630, ARRAY[''country:de|at'', ''returning'']);';

CREATE FUNCTION report.days_where(app text, site text, from_day integer, to_day integer, conditions text[], period text DEFAULT 'day')
RETURNS TABLE (first_day integer, visitors bigint, new_visitors bigint, pv bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    SELECT f.day_id, f.visitors, f.new_visitors, f.pv
    FROM filter_panels(app, site, from_day, to_day, conditions, '{days}', period => period) AS f
$$;

COMMENT ON FUNCTION report.days_where(text, text, integer, integer, text[], text) IS 'The numbers of report.numbers_where by day, week (from Monday) or month, each identified by the first of its days in the range. Periods without visitors are left out. SELECT * FROM report.days_where(''demo'', ''example.com'', 20190601, 20190630, ARRAY[''page:/docs/*''], ''week'');';

CREATE FUNCTION report.tags_where(app text, site text, names text[], from_day integer, to_day integer, conditions text[], n integer DEFAULT 10)
RETURNS TABLE (name text, value text, pv bigint, new_visitors bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    SELECT f.name, f.value, f.pv, f.new_visitors
    FROM filter_panels(app, site, from_day, to_day, conditions, '{tags}', names, most_values => n) AS f
$$;

COMMENT ON FUNCTION report.tags_where(text, text, text[], integer, integer, text[], integer) IS 'Tags of the visitors of a site for whom all conditions hold (see report.visitors_where): the first n values of each name by pv. The last row of a name, (none), has the visitors without the tag. For all sites of an app as one, a visitor of several sites with different values counts for each value. SELECT * FROM report.tags_where(''demo'', ''example.com'', ARRAY[''source'', ''browser''], 20190601, 20190630, ARRAY[''country:de'']);';

CREATE FUNCTION report.pages_where(app text, site text, from_day integer, to_day integer, conditions text[], n integer DEFAULT 10)
RETURNS TABLE (uri text, uniques bigint, new_visitors bigint, pv bigint, title text)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    SELECT f.value, f.visitors, f.new_visitors, f.pv, f.name
    FROM filter_panels(app, site, from_day, to_day, conditions, '{pages}', most_pages => n) AS f
$$;

COMMENT ON FUNCTION report.pages_where(text, text, integer, integer, text[], integer) IS 'The first n pages, by pv, that visitors of a site saw on days on which all conditions hold for them (see report.visitors_where). uniques: visitors, each once; new_visitors: new visitors of the page; pv: the number of the visitors'' days. SELECT * FROM report.pages_where(''demo'', ''example.com'', 20190601, 20190630, ARRAY[''source:google''], 20);';

CREATE FUNCTION report.filters_since(app text, site text, from_day integer, to_day integer)
RETURNS TABLE (since integer, erased bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
DECLARE
    f record := filter_query(app, site, 99991231, 99991231, '{}', true);
BEGIN
    PERFORM FROM visits WHERE false; -- locks only the parent table, and reads no partition
    RETURN QUERY
    SELECT coalesce(to_char(day_date(u.day_id) + 1, 'YYYYMMDD')::integer, 0),
           (SELECT coalesce(sum(e.visitors), 0)::bigint FROM erased_visits AS e WHERE e.page_id = ANY (f.sites) AND e.day_id BETWEEN from_day AND to_day AND e.day_id > coalesce(u.day_id, 0))
    FROM (
        SELECT greatest(
            (SELECT max(v.day_id) FROM visits AS v WHERE v.page_id = ANY (f.sites) AND v.day_id BETWEEN from_day AND to_day AND v.tags IS NULL),
            (SELECT max(d.day_id) FROM days AS d
             WHERE d.page_id = ANY (f.sites)
               AND d.day_id BETWEEN from_day AND to_day
               AND d.day_id < visits_kept_from((SELECT a.id FROM apps AS a WHERE a.name = filters_since.app)))) AS day_id
    ) AS u;
END
$$;

COMMENT ON FUNCTION report.filters_since(text, text, integer, integer) IS 'since: the first day of a range from which the tags of all visitors of a site are recorded, so that conditions can use them (0: on all days). erased: the number of erased visitors from that day on, counted once a day. Erased visitors are in no result. SELECT * FROM report.filters_since(''demo'', ''example.com'', 20190601, 20190630);';

REVOKE ALL ON FUNCTION report.visitors_where(text, text, integer, integer, text[]), report.numbers_where(text, text, integer, integer, text[]),
    report.days_where(text, text, integer, integer, text[], text), report.tags_where(text, text, text[], integer, integer, text[], integer),
    report.pages_where(text, text, integer, integer, text[], integer), report.filters_since(text, text, integer, integer) FROM PUBLIC;
