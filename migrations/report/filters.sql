-- What a filter selects are visitors of a site, each on each of their days. All of these functions
-- take the same conditions, of which all have to hold; of the site '' all sites of the app are one.
--
-- Their rows are joined by hash: see filter_query(). To compile what runs for a second takes half of
-- that.
CREATE FUNCTION report.visitors_where(app text, site text, from_day integer, to_day integer, conditions text[])
RETURNS TABLE (day_id integer, rank bigint, is_new boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
SET enable_nestloop = off
SET enable_mergejoin = off
SET jit = off
SET work_mem = '32MB'
AS $$
DECLARE
    f record := filter_query(app, site, from_day, to_day, conditions, true);
BEGIN
    IF f.site_id IS NULL THEN
        PERFORM filter_fault('ranks are of one site: name it');
    END IF;
    RETURN QUERY EXECUTE f.query || format(
        'SELECT f.day_id, w.rank, f.previous_day = 0 FROM f JOIN visitors AS w ON w.page_id = %s AND w.ip = f.ip WHERE (SELECT g.known FROM g)',
        f.site_id);
END
$$;

COMMENT ON FUNCTION report.visitors_where(text, text, integer, integer, text[]) IS 'The visitors of a site in a range of days for whom all conditions hold, each on each of their days, by rank; is_new: they had never come before. At most 8 conditions, each a name and a value: a tag (country:de), one of several (country:de|at), those without (source:(none)), a page that they saw on that day (page:/home), any page below a path (page:/docs/*), what they did on it (event:signup); or new, or returning. ! before one means not: !device:phone. A tag called page or event is tag.page. In values %7C, %2A and %21 stand for |, * and !. SELECT * FROM report.visitors_where(''demo'', ''example.com'', 20190601, 20190630, ARRAY[''source:google'', ''!page:/pricing'']);';

CREATE FUNCTION report.numbers_where(app text, site text, from_day integer, to_day integer, conditions text[])
RETURNS TABLE (visitors bigint, new_visitors bigint, pv bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
SET enable_nestloop = off
SET enable_mergejoin = off
SET enable_sort = off
SET jit = off
SET work_mem = '32MB'
AS $$
DECLARE
    f record := filter_query(app, site, from_day, to_day, conditions, false, conditions <> '{}');
BEGIN
    IF f.query IS NULL THEN
        RETURN QUERY
        SELECT NULL::bigint, coalesce(sum(d.newcomers), 0)::bigint, coalesce(sum(d.pv), 0)::bigint
        FROM tag_days AS d
        WHERE d.page_id = f.site_id
          AND d.day_id BETWEEN from_day AND to_day
          AND d.tag_id = ANY (f.by_tags);
    ELSE
        RETURN QUERY EXECUTE f.query || '
            SELECT count(*), coalesce(sum(v.fresh), 0)::bigint, coalesce(sum(v.pv), 0)::bigint
            FROM (SELECT f.ip, count(*) AS pv, count(*) FILTER (WHERE f.previous_day = 0) AS fresh FROM f GROUP BY f.ip) AS v
            WHERE (SELECT g.known FROM g)';
    END IF;
END
$$;

COMMENT ON FUNCTION report.numbers_where(text, text, integer, integer, text[]) IS 'How many visitors of a site came in a range of days for whom all conditions hold (see report.visitors_where): each once, those who were new, and on how many days (pv). Of days whose rows are gone pv of a single tag is known alone: then visitors are null, and new ones those who got their rank with it. SELECT * FROM report.numbers_where(''demo'', ''example.com'', 20190601, 20190630, ARRAY[''country:de|at'', ''returning'']);';

CREATE FUNCTION report.days_where(app text, site text, from_day integer, to_day integer, conditions text[], period text DEFAULT 'day')
RETURNS TABLE (first_day integer, visitors bigint, new_visitors bigint, pv bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
SET enable_nestloop = off
SET enable_mergejoin = off
SET enable_sort = off
SET jit = off
SET work_mem = '32MB'
AS $$
DECLARE
    f      record  := filter_query(app, site, from_day, to_day, conditions, false, conditions <> '{}');
    begins integer := from_day;
BEGIN
    IF period NOT IN ('day', 'week', 'month') THEN
        RAISE EXCEPTION 'period: % is none: use day, week or month', period USING ERRCODE = '22023';
    END IF;
    IF begins = 0 THEN
        begins := (SELECT min(d.day_id) FROM days AS d WHERE d.page_id = ANY (f.sites));
    END IF;
    IF f.query IS NULL THEN
        RETURN QUERY
        SELECT greatest(p.first_day, begins), CASE period WHEN 'day' THEN sum(d.pv)::bigint END, sum(d.newcomers)::bigint, sum(d.pv)::bigint
        FROM tag_days AS d
        CROSS JOIN LATERAL (SELECT to_char(date_trunc(period, day_date(d.day_id)), 'YYYYMMDD')::integer AS first_day) AS p
        WHERE d.page_id = f.site_id
          AND d.day_id BETWEEN from_day AND to_day
          AND d.tag_id = ANY (f.by_tags)
        GROUP BY greatest(p.first_day, begins)
        ORDER BY greatest(p.first_day, begins);
    ELSIF period = 'day' THEN
        RETURN QUERY EXECUTE f.query || '
            SELECT f.day_id, count(*), count(*) FILTER (WHERE f.previous_day = 0), count(*)
            FROM f
            WHERE (SELECT g.known FROM g)
            GROUP BY f.day_id
            ORDER BY f.day_id';
    ELSE
        RETURN QUERY EXECUTE f.query || ',
            p AS MATERIALIZED (
                SELECT d.day_id, greatest(to_char(date_trunc($1, day_date(d.day_id)), ''YYYYMMDD'')::integer, $2) AS first_day
                FROM (SELECT f.day_id FROM f GROUP BY f.day_id) AS d
            ), v AS (
                SELECT p.first_day, f.ip, count(*) AS pv, count(*) FILTER (WHERE f.previous_day = 0) AS fresh
                FROM f
                JOIN p ON p.day_id = f.day_id
                WHERE (SELECT g.known FROM g)
                GROUP BY p.first_day, f.ip
            )
            SELECT v.first_day, count(*), sum(v.fresh)::bigint, sum(v.pv)::bigint
            FROM v
            GROUP BY v.first_day
            ORDER BY v.first_day' USING period, begins;
    END IF;
END
$$;

COMMENT ON FUNCTION report.days_where(text, text, integer, integer, text[], text) IS 'The same by day, week (from Monday) or month, each by the first of its days in the range; those in which nobody came are left out. SELECT * FROM report.days_where(''demo'', ''example.com'', 20190601, 20190630, ARRAY[''page:/docs/*''], ''week'');';

CREATE FUNCTION report.tags_where(app text, site text, names text[], from_day integer, to_day integer, conditions text[], n integer DEFAULT 10)
RETURNS TABLE (name text, value text, pv bigint, new_visitors bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
SET enable_nestloop = off
SET enable_mergejoin = off
SET jit = off
SET work_mem = '32MB'
AS $$
DECLARE
    f record := filter_query(app, site, from_day, to_day, conditions, true);
BEGIN
    RETURN QUERY EXECUTE f.query || ',
        a AS MATERIALIZED (
            SELECT count(*) AS pv, count(*) FILTER (WHERE f.previous_day = 0) AS fresh
            FROM f
            WHERE (SELECT g.known FROM g)
        ), c AS MATERIALIZED (
            SELECT u.tag_id, count(*) AS pv, count(*) FILTER (WHERE u.previous_day = 0) AS fresh
            FROM (SELECT unnest(f.tags) AS tag_id, f.previous_day FROM f) AS u
            GROUP BY u.tag_id
        ), v AS MATERIALIZED (
            SELECT t.name, t.value, c.tag_id, c.pv, c.fresh, row_number() OVER (PARTITION BY t.name ORDER BY c.pv DESC, c.tag_id) AS place
            FROM c
            JOIN tags AS t ON t.id = c.tag_id
            WHERE t.name = ANY ($1)
        ), h AS (
            ' || CASE
                     WHEN f.site_id IS NULL THEN '
            SELECT o.name, count(*) AS pv, count(*) FILTER (WHERE o.previous_day = 0) AS fresh
            FROM (
                SELECT DISTINCT t.name, u.day_id, u.ip, u.previous_day
                FROM (SELECT unnest(f.tags) AS tag_id, f.day_id, f.ip, f.previous_day FROM f) AS u
                JOIN tags AS t ON t.id = u.tag_id
                WHERE t.name = ANY ($1)
            ) AS o
            GROUP BY o.name'
                     ELSE 'SELECT v.name, sum(v.pv) AS pv, sum(v.fresh) AS fresh FROM v GROUP BY v.name'
                 END || '
        )
        SELECT o.name, o.value, o.pv::bigint, o.fresh::bigint
        FROM (
            SELECT v.name, v.value, v.pv, v.fresh, v.place
            FROM v
            WHERE v.place <= $2
            UNION ALL
            SELECT w.name, ''(none)'', a.pv - coalesce(h.pv, 0), a.fresh - coalesce(h.fresh, 0), NULL
            FROM unnest($1) AS w (name)
            CROSS JOIN a
            LEFT JOIN h ON h.name = w.name
        ) AS o
        ORDER BY array_position($1, o.name), o.place' USING names, n;
END
$$;

COMMENT ON FUNCTION report.tags_where(text, text, text[], integer, integer, text[], integer) IS 'With what the visitors of a site came for whom all conditions hold (see report.visitors_where): of each name the first n values by pv, and in its last row, (none), those without. Of all sites of an app as one, a visitor who came to several of them with different values counts for each. SELECT * FROM report.tags_where(''demo'', ''example.com'', ARRAY[''source'', ''browser''], 20190601, 20190630, ARRAY[''country:de'']);';

CREATE FUNCTION report.pages_where(app text, site text, from_day integer, to_day integer, conditions text[], n integer DEFAULT 10)
RETURNS TABLE (uri text, uniques bigint, new_visitors bigint, pv bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
SET enable_nestloop = off
SET enable_mergejoin = off
SET jit = off
SET work_mem = '32MB'
AS $$
DECLARE
    f record := filter_query(app, site, from_day, to_day, conditions, true);
BEGIN
    RETURN QUERY EXECUTE f.query || ',
        v AS (
            SELECT p.page_id, p.ip, count(*) AS pv, count(*) FILTER (WHERE p.previous_day = 0) AS fresh
            FROM f
            JOIN visits AS p ON p.day_id = f.day_id AND p.ip = f.ip
            WHERE (SELECT g.known FROM g)
              AND p.day_id BETWEEN $2 AND $3
              AND p.page_id IN (SELECT o.id FROM pages AS o WHERE o.site_id = ANY ($1))
            GROUP BY p.page_id, p.ip
        ), c AS (
            SELECT v.page_id, count(*) AS uniques, sum(v.fresh)::bigint AS fresh, sum(v.pv)::bigint AS pv
            FROM v
            GROUP BY v.page_id
        )
        SELECT o.uri, c.uniques, CASE WHEN o.uri LIKE ''%/(deleted)'' THEN 0 ELSE c.fresh END, c.pv
        FROM c
        JOIN pages AS o ON o.id = c.page_id
        ORDER BY c.pv DESC, c.page_id
        LIMIT $4' USING f.sites, from_day, to_day, n;
END
$$;

COMMENT ON FUNCTION report.pages_where(text, text, integer, integer, text[], integer) IS 'The first n pages, by pv, that visitors of a site saw on days on which all conditions hold for them (see report.visitors_where): how many visitors, who was new to the page, and on how many days. SELECT * FROM report.pages_where(''demo'', ''example.com'', 20190601, 20190630, ARRAY[''source:google''], 20);';

CREATE FUNCTION report.filters_since(app text, site text, from_day integer, to_day integer)
RETURNS TABLE (since integer, erased bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
DECLARE
    f record := filter_query(app, site, 99991231, 99991231, '{}', true);
BEGIN
    PERFORM FROM visits WHERE false; -- see filter_query()
    RETURN QUERY
    SELECT coalesce(to_char(day_date(u.day_id) + 1, 'YYYYMMDD')::integer, 0),
           (SELECT coalesce(sum(e.visitors), 0)::bigint FROM erased_visits AS e WHERE e.page_id = f.site_id AND e.day_id BETWEEN from_day AND to_day AND e.day_id > coalesce(u.day_id, 0))
    FROM (
        SELECT greatest(
            (SELECT max(v.day_id) FROM visits AS v WHERE v.page_id = f.site_id AND v.day_id BETWEEN from_day AND to_day AND v.tags IS NULL),
            (SELECT max(d.day_id) FROM days AS d
             WHERE d.page_id = f.site_id
               AND d.day_id BETWEEN from_day AND to_day
               AND d.day_id < visits_kept_from((SELECT a.id FROM apps AS a WHERE a.name = filters_since.app)))) AS day_id
    ) AS u;
END
$$;

COMMENT ON FUNCTION report.filters_since(text, text, integer, integer) IS 'From which day of a range on it is known of all visitors of a site with what they came, so that they can be asked for by conditions (0: on all of its days), and how many visitors of these days, each on each of them, were erased and are in no answer. SELECT * FROM report.filters_since(''demo'', ''example.com'', 20190601, 20190630);';

REVOKE ALL ON FUNCTION report.visitors_where(text, text, integer, integer, text[]), report.numbers_where(text, text, integer, integer, text[]),
    report.days_where(text, text, integer, integer, text[], text), report.tags_where(text, text, text[], integer, integer, text[], integer),
    report.pages_where(text, text, integer, integer, text[], integer), report.filters_since(text, text, integer, integer) FROM PUBLIC;
