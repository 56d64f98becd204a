-- Events of visitors of a site, and how many visitors reached goals and the steps of funnels. An event belongs to its app,
-- because an API call with an event need not contain a site. An event counts for a site if the visitor visited the site on
-- the same day.

CREATE FUNCTION report.events_where(app text, site text, from_day integer, to_day integer, conditions text[] DEFAULT '{}', n integer DEFAULT 10)
RETURNS TABLE (event text, visitors bigint, of_visitors bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    SELECT f.value, f.visitors, f.pv
    FROM filter_panels(app, site, from_day, to_day, conditions, '{events}', most_values => n) AS f
$$;

COMMENT ON FUNCTION report.events_where(text, text, integer, integer, text[], integer) IS 'The first n events of visitors of a site in a range of days. Only days count on which all conditions hold for the visitor (see report.visitors_where). visitors: visitors with the event, each once; of_visitors: all visitors. An event may be from anywhere in the app. SELECT * FROM report.events_where(''demo'', ''example.com'', 20190601, 20190630, ARRAY[''source:google'']);';

REVOKE ALL ON FUNCTION report.events_where(text, text, integer, integer, text[], integer) FROM PUBLIC;

CREATE FUNCTION report.one_page_where(app text, site text, from_day integer, to_day integer, conditions text[] DEFAULT '{}')
RETURNS TABLE (visits bigint, one_page bigint, unknown bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
DECLARE
    f      record   := filter_query(app, site, from_day, to_day, conditions, true, false);
    summed bigint[] := ARRAY(SELECT p.id FROM unnest(f.sites) AS s (id) JOIN pages AS o ON o.id = s.id
                             JOIN pages AS p ON p.app_id = f.of_app AND p.key IN (page_key(o.uri || '/(other)'), page_key(o.uri || '/(deleted)')));
BEGIN
    RETURN QUERY SELECT * FROM filter_rows(f.query || format('
        SELECT count(*), count(*) FILTER (WHERE c.pages = 1 AND NOT c.summed), count(*) FILTER (WHERE c.pages = 1 AND c.summed)
        FROM (
            SELECT p.day_id, p.ip, count(*) AS pages, bool_or(p.page_id = ANY (%L)) AS summed
            FROM %s AS p
            WHERE p.page_id IN (SELECT o.id FROM pages AS o WHERE o.site_id = ANY (%L))
              AND p.day_id BETWEEN %s AND %s
            GROUP BY p.day_id, p.ip
        ) AS c', summed, CASE WHEN conditions = '{}' THEN 'visits' ELSE 'p' END, f.sites, from_day, to_day)) AS r (visits bigint, one_page bigint, unknown bigint);
END
$$;

COMMENT ON FUNCTION report.one_page_where(text, text, integer, integer, text[]) IS 'visits: visitors of a site, each counted on each of their days in a range. one_page: those who saw only one page on the day. unknown: those who saw only a sum of pages, (other) or (deleted), which may be several pages. SELECT * FROM report.one_page_where(''demo'', ''example.com'', 20190601, 20190630, ARRAY[''source:google'']);';

-- A goal that no visitor has reached yet has no row in pages. It is accepted if it is a goal of the app.
CREATE FUNCTION report.goals_where(app text, site text, from_day integer, to_day integer, conditions text[] DEFAULT '{}', only_goal text DEFAULT NULL, by text DEFAULT NULL, n integer DEFAULT 100)
RETURNS TABLE (goal text, value text, visitors bigint, of_visitors bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    of_tag boolean  := by <> 'day';
    of_app integer  := (SELECT a.id FROM apps AS a WHERE a.name = goals_where.app);
    listed text[]   := coalesce((SELECT a.goals FROM apps AS a WHERE a.id = of_app), '{}');
    goals  text[]   := CASE WHEN only_goal IS NULL THEN listed ELSE ARRAY[only_goal] END;
    ofs    text[]   := '{}';
    ids    bigint[] := '{}';
    wanted text;
    c      record;
    f      record;
BEGIN
    IF of_tag AND NOT EXISTS (SELECT FROM report.tag_names(app) AS t WHERE t.name = by) THEN
        PERFORM filter_fault('by: %s is not possible: use day, %s', quote_ident(by), (SELECT string_agg(t.name, ', ') FROM report.tag_names(app) AS t));
    END IF;
    FOREACH wanted IN ARRAY goals LOOP
        IF wanted !~ '^(page|event):' THEN
            PERFORM filter_fault('%s is not a goal: write one like event:signup or page:/thanks', quote_ident(wanted));
        END IF;
        BEGIN
            c := filter_condition(of_app, app, site, wanted);
            ids := ids || c.pages;
            ofs := ofs || array_fill(wanted, ARRAY[cardinality(c.pages)]);
        EXCEPTION WHEN invalid_parameter_value THEN
            IF wanted <> ALL (listed) THEN
                RAISE;
            END IF;
        END;
    END LOOP;
    f := filter_query(app, site, from_day, to_day, conditions, true, coalesce(of_tag, false), ids);
    RETURN QUERY SELECT * FROM filter_rows(f.query || format(', k AS (
            SELECT f.day_id, f.ip, coalesce(u.value, ''(none)'') AS value
            FROM f
            LEFT JOIN (
                SELECT o.day_id, o.ip, t.value
                FROM (SELECT f.day_id, f.ip, unnest(f.tags) AS tag_id FROM f) AS o
                JOIN tags AS t ON t.id = o.tag_id AND t.name = %L
            ) AS u ON u.day_id = f.day_id AND u.ip = f.ip
        ), b AS MATERIALIZED (%s), r AS (
            SELECT o.goal, o.value, count(*) AS visitors
            FROM (
                SELECT w.goal, %s AS value, p.ip
                FROM p
                JOIN unnest(%L::text[], %L::bigint[]) AS w (goal, page_id) ON w.page_id = p.page_id
                %s
                WHERE p.page_id = ANY (%5$L)
                GROUP BY 1, 2, 3
            ) AS o
            GROUP BY o.goal, o.value
        )
        SELECT l.goal, b.value, coalesce(r.visitors, 0), b.visitors
        FROM unnest(%7$L::text[]) WITH ORDINALITY AS l (goal, place)
        CROSS JOIN b
        LEFT JOIN r ON r.goal = l.goal AND r.value = b.value
        ORDER BY l.place, %s
        LIMIT %s',
        by,
        CASE
            WHEN of_tag      THEN 'SELECT o.value, count(*) AS visitors FROM (SELECT k.value FROM k GROUP BY k.value, k.ip) AS o GROUP BY o.value'
            WHEN by = 'day'  THEN 'SELECT f.day_id::text AS value, count(*) AS visitors FROM f GROUP BY f.day_id'
            ELSE 'SELECT ''''::text AS value, a.visitors FROM a'
        END,
        CASE WHEN of_tag THEN 'k.value' WHEN by = 'day' THEN 'p.day_id::text' ELSE '''''::text' END,
        ofs, ids,
        CASE WHEN of_tag THEN 'JOIN k ON k.day_id = p.day_id AND k.ip = p.ip' END,
        goals, CASE WHEN of_tag THEN 'b.visitors DESC, b.value' ELSE 'b.value' END, n)) AS r (goal text, value text, visitors bigint, of_visitors bigint);
END
$$;

COMMENT ON FUNCTION report.goals_where(text, text, integer, integer, text[], text, text, integer) IS 'Visitors of a site who reached the app''s goals (app set --goal), or one goal like event:signup or page:/thanks, in a range of days. Only days count on which all conditions hold for the visitor (see report.visitors_where). of_visitors: all visitors. Each visitor counts once, or once for each day or value of a tag (by: day, or a name like source). SELECT * FROM report.goals_where(''demo'', ''example.com'', 20190601, 20190630, ''{}'', ''event:signup'', ''source'');';

-- A visitor reaches a step on the first day on which they meet its condition and have reached all earlier steps. The order of
-- visits within a day is not recorded, so a visitor may reach several steps on the same day.
CREATE FUNCTION report.funnel_where(app text, site text, from_day integer, to_day integer, steps text[], conditions text[] DEFAULT '{}')
RETURNS TABLE (place integer, step text, visitors bigint, same_day bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    f      record;
    c      record;
    ids    bigint[]  := '{}';
    bits   integer[] := '{}'; -- for each page, bits of the steps whose conditions the page meets
    holds  text      := '';
    until  text      := '';
    told   text      := '';
    so_far text      := '';
BEGIN
    IF coalesce(cardinality(steps), 0) NOT BETWEEN 1 AND 8 THEN
        PERFORM filter_fault('there are %s steps: give 1 to 8', coalesce(cardinality(steps), 0)::text);
    END IF;
    f := filter_query(app, site, from_day, to_day, conditions, true,
                      EXISTS (SELECT FROM unnest(steps) AS s (step) WHERE split_part(ltrim(s.step, '!'), ':', 1) NOT IN ('page', 'event', 'new', 'returning')));
    IF f.sites = '{}' THEN
        RETURN QUERY SELECT s.place::integer, s.step, 0::bigint, 0::bigint FROM unnest(steps) WITH ORDINALITY AS s (step, place);
        RETURN;
    END IF;
    FOR i IN 1..cardinality(steps) LOOP
        c := filter_condition(f.of_app, app, site, steps[i]);
        IF c.pages IS NOT NULL THEN
            ids := ids || c.pages;
            bits := bits || array_fill(1 << i, ARRAY[cardinality(c.pages)]);
        END IF;
        holds := holds || format(', %s AS s%s', coalesce(c.asks, format('coalesce(m.bits, 0) & %s %s 0', 1 << i, CASE WHEN c.negated THEN '=' ELSE '<>' END)), i);
        until := until || format(', e%s AS MATERIALIZED (SELECT k.ip, min(k.day_id) AS day_id FROM k%s WHERE k.s%1$s GROUP BY k.ip)',
                                 i, CASE WHEN i > 1 THEN format(' JOIN e%s AS e ON e.ip = k.ip AND e.day_id <= k.day_id', i - 1) END);
        so_far := so_far || format(' AND k.s%s', i);
        told := told || format('%s SELECT %s, %L, (SELECT count(*) FROM e%2$s), (SELECT count(*) FROM (SELECT FROM k WHERE true%4$s GROUP BY k.ip) AS d)',
                               CASE WHEN i > 1 THEN ' UNION ALL' END, i, steps[i], so_far);
    END LOOP;
    RETURN QUERY SELECT * FROM filter_rows(f.query || format(', w AS (
            SELECT u.page_id, bit_or(u.bits) AS bits FROM unnest(%L::bigint[], %L::integer[]) AS u (page_id, bits) GROUP BY u.page_id
        ), m AS (
            SELECT p.day_id, p.ip, bit_or(w.bits) AS bits
            FROM visits AS p
            JOIN w ON w.page_id = p.page_id
            WHERE p.page_id = ANY (%1$L)
              AND p.day_id BETWEEN %3$s AND %s
            GROUP BY p.day_id, p.ip
        ), k AS MATERIALIZED (
            SELECT v.day_id, v.ip%s
            FROM f AS v
            LEFT JOIN m ON m.day_id = v.day_id AND m.ip = v.ip
        )%s %s', ids, bits, from_day, to_day, holds, until, told)) AS r (place integer, step text, visitors bigint, same_day bigint);
END
$$;

COMMENT ON FUNCTION report.funnel_where(text, text, integer, integer, text[], text[]) IS 'Funnel of visitors of a site in a range of days. visitors: those who reached this step and all steps before it, each step on the day of the previous one or later. same_day: those who reached all these steps on one day. Each visitor counts once. Up to 8 steps, written as conditions (see report.visitors_where) that hold for the visitor on a day. Only days count on which the other conditions hold. The order within a day is not recorded. SELECT * FROM report.funnel_where(''demo'', ''example.com'', 20190601, 20190630, ARRAY[''page:/'', ''page:/pricing'', ''event:signup'']);';

REVOKE ALL ON FUNCTION report.one_page_where(text, text, integer, integer, text[]), report.goals_where(text, text, integer, integer, text[], text, text, integer),
    report.funnel_where(text, text, integer, integer, text[], text[]) FROM PUBLIC;
