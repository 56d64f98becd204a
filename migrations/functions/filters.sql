-- Filters: queries about the visitors of a site on each of their days. Conditions are texts as users write them. filter_query()
-- returns the text of a query. This text contains the ids of the tags and pages in the conditions, but no text of the
-- conditions.

-- Returns the values of a condition, which are separated by bars in its text. In a value, %7C, %2A and %21 mean a bar, a star
-- and an exclamation mark. %25 means a percent sign only before 7C, 2A, 21 or 25: %257C means the text %7C.
CREATE FUNCTION filter_values(written text) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT
SET search_path = footfall, pg_temp
AS $$
    SELECT array_agg(replace(
               regexp_replace(regexp_replace(regexp_replace(regexp_replace(
                   v.value, '%25(?=7C|2A|21|25)', chr(1), 'gi'), '%7C', '|', 'gi'), '%2A', '*', 'gi'), '%21', '!', 'gi'),
               chr(1), '%') ORDER BY v.place)
    FROM unnest(string_to_array(written, '|')) WITH ORDINALITY AS v (value, place)
$$;

COMMENT ON FUNCTION filter_values(text) IS 'The values in a condition of a filter, as they are stored.';

CREATE FUNCTION filter_fault(format text, VARIADIC args text[] DEFAULT '{}') RETURNS void
LANGUAGE plpgsql IMMUTABLE
SET search_path = footfall, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION '%', 'where: ' || format(format, VARIADIC args)
        USING ERRCODE = '22023', DETAIL = jsonb_build_object('field', 'where', 'text', format, 'values', args);
END
$$;

COMMENT ON FUNCTION filter_fault(text, text[]) IS 'Raises an error about a filter. The DETAIL of the error has the format and its values, so that pages can show the text in their language.';

-- unknown is the last day on which the tags of some visitor are not recorded, or null if there is no such day. Fails unless
-- unknown is null.
CREATE FUNCTION filter_known(unknown integer) RETURNS boolean
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF unknown IS NOT NULL THEN
        PERFORM filter_fault('for %s and before, the tags of some visitors are not on record: choose later days', day_date(unknown)::text);
    END IF;
    RETURN true;
END
$$;

COMMENT ON FUNCTION filter_known(integer) IS 'Returns true if unknown is null. Otherwise fails with an error that the tags of some visitors are not recorded on this day and before.';

-- Whether any visitor ever came to a site with a tag. tag_days is updated about a second after visits, so the last day is also
-- searched in visits. tag_days is searched day by day, the last day first, because its key is in order of days.
CREATE FUNCTION filter_came(site bigint, tag integer) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT
SET search_path = footfall, pg_temp
AS $$
DECLARE
    last_day integer;
    came     boolean;
BEGIN
    IF EXISTS (
        SELECT
        FROM (SELECT d.day_id FROM days AS d WHERE d.page_id = site ORDER BY d.day_id DESC) AS d
        CROSS JOIN LATERAL (SELECT FROM tag_days AS t WHERE t.page_id = site AND t.day_id = d.day_id AND t.tag_id = tag LIMIT 1) AS t)
    THEN
        RETURN true;
    END IF;
    last_day := (SELECT max(d.day_id) FROM days AS d WHERE d.page_id = site);
    EXECUTE format('SELECT EXISTS (SELECT FROM visits AS v WHERE v.page_id = %s AND v.day_id = %s AND %s = ANY (v.tags))', site, coalesce(last_day, 0), tag)
    INTO came;
    RETURN came;
END
$$;

COMMENT ON FUNCTION filter_came(bigint, integer) IS 'Whether any visitor ever came to a site with a tag.';

-- Up to ten values of a tag with this name. If site is not null, these are values that visitors of the site had lately. If site
-- is null, they are values that visitors of any site of the app ever had.
CREATE FUNCTION filter_values_of(of_app integer, site bigint, name text) RETURNS text
LANGUAGE sql STABLE
SET search_path = footfall, pg_temp
AS $$
    SELECT string_agg(v.value, ', ')
    FROM (
        SELECT t.value
        FROM tags AS t
        WHERE t.app_id = of_app
          AND t.name = filter_values_of.name
          AND (site IS NULL OR t.id = ANY (ARRAY(SELECT d.tag_id FROM tag_days AS d WHERE d.page_id = site ORDER BY d.day_id DESC LIMIT 10000)))
        ORDER BY t.value = '(other)', t.id
        LIMIT 10
    ) AS v
$$;

COMMENT ON FUNCTION filter_values_of(integer, bigint, text) IS 'Some values of a tag that visitors of a site, or of any site of an app, had. Null: none.';

-- ids are the ids of the values in a condition on a tag. If (none) is among the values, without has the ids of all values of
-- the tag. A value that no visitor of the site had is treated like a value that the app never had. So a user who may see only
-- this site learns nothing about other sites.
CREATE FUNCTION filter_tags(of_app integer, app text, site text, name text, written text, OUT ids integer[], OUT without integer[])
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    site_id bigint := CASE
                          WHEN site <> ''
                          THEN coalesce((SELECT p.id FROM pages AS p WHERE p.app_id = of_app AND p.key = page_key(as_stored(site)) AND p.site_id IS NULL), 0)
                      END;
    wanted  text;
    found   integer[];
BEGIN
    IF NOT EXISTS (SELECT FROM report.tag_names(app) AS n WHERE n.name = filter_tags.name) THEN
        PERFORM filter_fault('%s is not a possible condition: there are page, event, new, returning, %s', quote_ident(name),
                             (SELECT string_agg(n.name, ', ') FROM report.tag_names(app) AS n));
    END IF;
    ids := '{}';
    FOREACH wanted IN ARRAY filter_values(written) LOOP
        IF wanted = '(none)' THEN
            without := ARRAY(SELECT t.id FROM tags AS t WHERE t.app_id = of_app AND t.name = filter_tags.name);
            CONTINUE;
        END IF;
        found := ARRAY(SELECT t.id FROM tags AS t WHERE t.app_id = of_app AND t.name = filter_tags.name AND lower(t.value) = lower(wanted));
        IF found = '{}' OR site_id IS NOT NULL AND NOT EXISTS (SELECT FROM unnest(found) AS f (id) WHERE filter_came(site_id, f.id)) THEN
            IF filter_values_of(of_app, site_id, name) IS NULL THEN
                PERFORM filter_fault('no visitor ever had %s "%s": there are no values', name, wanted);
            END IF;
            PERFORM filter_fault('no visitor ever had %s "%s": there are %s', name, wanted, filter_values_of(of_app, site_id, name));
        END IF;
        ids := ids || found;
    END LOOP;
END
$$;

COMMENT ON FUNCTION filter_tags(integer, text, text, text, text) IS 'ids: the tags (name and value) in a condition. without: all tags with the name in the condition, if (none) is among its values.';

-- The pages of a site, or the events of its app, in the value of a condition such as page:/docs/* or event:signup.
CREATE FUNCTION filter_pages(of_app integer, site text, is_event boolean, written text) RETURNS bigint[]
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    part   text;
    wanted text;
    below  boolean;
    found  bigint[];
    ids    bigint[] := '{}';
BEGIN
    FOREACH part IN ARRAY string_to_array(written, '|') LOOP
        IF NOT is_event AND part NOT LIKE '/%' THEN
            PERFORM filter_fault('%s is not a path: a page is written like page:/home', quote_ident(part));
        ELSIF NOT is_event AND site = '' THEN
            PERFORM filter_fault('page:%s needs a site: name one, since each site has its own pages', part);
        END IF;
        below := part LIKE '%/*';
        wanted := CASE WHEN is_event THEN '(events)/' ELSE site END || (filter_values(CASE WHEN below THEN left(part, -1) ELSE part END))[1];
        IF below THEN
            found := ARRAY(
                SELECT p.id
                FROM pages AS p
                WHERE p.app_id = of_app
                  AND p.site_id IS NOT NULL
                  AND left(p.uri, 200) ~>=~ left(wanted, 200)
                  AND left(p.uri, 200) ~<=~ left(wanted || U&'\+10FFFF', 200)
                  AND p.uri ~>=~ wanted
                  AND p.uri ~<~ (wanted || U&'\+10FFFF'));
        ELSE
            found := ARRAY(SELECT p.id FROM pages AS p WHERE p.app_id = of_app AND p.key = page_key(wanted) AND p.site_id IS NOT NULL);
        END IF;
        IF found = '{}' AND is_event THEN
            PERFORM filter_fault('nobody ever triggered "%s": there are %s', part,
                                 coalesce((SELECT string_agg(substr(e.uri, 10), ', ') FROM (
                                     SELECT e.uri FROM pages AS s JOIN pages AS e ON e.site_id = s.id
                                     WHERE s.app_id = of_app AND s.key = page_key('(events)') ORDER BY e.id LIMIT 10) AS e), 'no events'));
        ELSIF found = '{}' THEN
            PERFORM filter_fault('%s has no page %s: a page is written as its path, like page:/home, and everything below one like page:/docs/*', site, part);
        END IF;
        ids := ids || found;
    END LOOP;
    IF cardinality(ids) > 100000 THEN
        PERFORM filter_fault('these are more than 100,000 pages: choose fewer');
    END IF;
    RETURN ids;
END
$$;

COMMENT ON FUNCTION filter_pages(integer, text, boolean, text) IS 'The pages of a site, or the events of its app, that match the value of a condition.';

-- SQL text of a condition on a row v of visits: the row has at least one of the given tags. Up to 8 tags are compared one by
-- one, and more tags are looked up as a list.
CREATE FUNCTION filter_has(ids integer[]) RETURNS text
LANGUAGE sql IMMUTABLE STRICT
SET search_path = footfall, pg_temp
AS $$
    SELECT CASE
               WHEN cardinality(ids) <= 8 THEN '(' || coalesce((SELECT string_agg(format('%s = ANY (v.tags)', i.id), ' OR ') FROM unnest(ids) AS i (id)), 'false') || ')'
               ELSE format('EXISTS (SELECT FROM unnest(v.tags) AS t (id) WHERE t.id = ANY (%L))', ids)
           END
$$;

COMMENT ON FUNCTION filter_has(integer[]) IS 'SQL text of a condition: the row v of visits has at least one of the given tags.';

CREATE FUNCTION visits_kept_from(app integer) RETURNS integer
LANGUAGE sql STABLE
SET search_path = footfall, pg_temp
AS $$
    SELECT greatest(coalesce((SELECT k.from_day FROM visits_kept AS k WHERE k.app_id = app), 0), last_dropped_day() + 1)
$$;

COMMENT ON FUNCTION visits_kept_from(integer) IS 'First day from which all rows of visits of an app are kept, except those of erased visitors.';

CREATE FUNCTION filter_kept(app text, of_app integer) RETURNS void
LANGUAGE sql STABLE
SET search_path = footfall, pg_temp
AS $$
    SELECT filter_fault('visitors before %s are not on record: choose later days; footfall app set %s --retain-days keeps more',
                        day_date(visits_kept_from(of_app))::text, app)
$$;

COMMENT ON FUNCTION filter_kept(text, integer) IS 'Fails with an error that shows the first day from which rows are kept.';

-- Results:
--   negated  the condition begins with !
--   asks     SQL text of the condition on a row v of a site, including the negation; null if pages is set
--   pages    set if the condition is about pages or events: the visitor must have visited one of these on the day of the
--            row, or none of them if the condition is negated
--   tags     tags of which a row must have one, if this is the whole condition; otherwise null
--   tagged   the condition reads the tags of rows
CREATE FUNCTION filter_condition(of_app integer, app text, site text, condition text,
                                 OUT negated boolean, OUT asks text, OUT pages bigint[], OUT tags integer[], OUT tagged boolean)
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    rest    text;
    name    text;
    written text;
    named   record;
BEGIN
    negated := condition LIKE '!%';
    rest := substr(condition, 1 + negated::integer);
    name := split_part(rest, ':', 1);
    written := substr(rest, length(name) + 2);
    tagged := false;
    IF rest IN ('new', 'returning') THEN
        asks := CASE WHEN (rest = 'new') <> negated THEN 'v.previous_day = 0' ELSE 'v.previous_day > 0' END;
    ELSIF name = '' OR written = '' THEN
        PERFORM filter_fault('"%s" is not a condition: write one like source:google, country:de|at, !device:phone, page:/home, event:signup, new or returning',
                             condition);
    ELSIF name IN ('page', 'event') THEN
        pages := filter_pages(of_app, site, name = 'event', written);
    ELSE
        named := filter_tags(of_app, app, site, regexp_replace(name, '^tag\.', ''), written);
        asks := format('%s(%s%s)', CASE WHEN negated THEN 'NOT ' END, filter_has(named.ids), ' OR NOT ' || filter_has(named.without));
        tags := CASE WHEN NOT negated AND named.without IS NULL THEN named.ids END;
        tagged := true;
    END IF;
END
$$;

COMMENT ON FUNCTION filter_condition(integer, text, text, text) IS 'Translates a condition of a filter into SQL text about a row of a site, or into pages that the visitor must have visited on the same day.';

-- Combines the rows of several sites into rows v like those of one site. Each visitor has one row per day, with the tags of all
-- their visits on that day. A visitor is new if they had visited none of the sites before. This needs the first days of
-- visitors at all sites, because rows of the requested days do not show earlier visits to other sites.
CREATE FUNCTION filter_sites(sites bigint[], from_day integer, to_day integer, needs_tags boolean) RETURNS text
LANGUAGE sql IMMUTABLE
SET search_path = footfall, pg_temp
AS $$
    SELECT format('(SELECT x.day_id, x.ip, x.tags, '
                  'CASE WHEN x.is_new AND (SELECT min(w.first_day) FROM visitors AS w WHERE w.page_id = ANY (%1$L) AND w.ip = x.ip) = x.day_id THEN 0 ELSE 1 END AS previous_day '
                  'FROM (SELECT o.day_id, o.ip, bool_and(o.previous_day = 0) AS is_new, %4$s AS tags FROM visits AS o '
                  'WHERE o.page_id = ANY (%1$L) AND o.day_id BETWEEN %2$s AND %3$s GROUP BY o.day_id, o.ip) AS x) AS v',
                  sites, from_day, to_day,
                  CASE
                      WHEN needs_tags
                      THEN $t$CASE WHEN bool_or(o.tags IS NULL) THEN NULL WHEN count(*) = 1 THEN min(o.tags)
                                   ELSE ARRAY(SELECT DISTINCT t.id::integer
                                              FROM unnest(string_to_array(string_agg(array_to_string(o.tags, ','), ','), ',')) AS t (id)
                                              WHERE t.id <> '') END$t$
                      ELSE 'NULL::integer[]'
                  END)
$$;

COMMENT ON FUNCTION filter_sites(bigint[], integer, integer, boolean) IS 'SQL text after FROM: rows v with each visitor of several sites on each of their days.';

-- Uses a generic plan, because planning for all partitions of visits takes three times as long as looking up 200 rows.
CREATE FUNCTION filter_few(site bigint, asked bigint[], from_day integer, to_day integer)
RETURNS TABLE (page_id bigint, day_id integer, ip inet, previous_day integer)
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT p.page_id, p.day_id, p.ip, p.previous_day
    FROM visits AS p
    WHERE p.page_id = ANY (asked)
      AND p.day_id BETWEEN from_day AND to_day
      AND EXISTS (SELECT FROM visits AS s WHERE s.page_id = site AND s.day_id = p.day_id AND s.ip = p.ip OFFSET 0);
END
$$;

COMMENT ON FUNCTION filter_few(bigint, bigint[], integer, integer) IS 'Rows of a few pages and events, on days on which the visitor was also at a site. Looks up each row separately.';

-- query is the beginning of a query (WITH) for the visitors of a site that a filter selects. It defines these tables:
--   - f (day_id, ip, previous_day, tags) has each visitor on each of their days
--   - v (ip, pv, fresh) has each visitor once
--   - a (visitors) has the number of visitors
--   - p (page_id, day_id, ip, previous_day) has the visitors' rows of all pages and events on these days
--   - g (unknown) has the last day on which the tags of some visitor are not recorded
-- A query without tags, and without conditions on tags, covers every day whose rows are kept. Site '' means all sites of the
-- app as one. A site that has not been counted has no visitors, and a filter with conditions fails for it.
--
-- needs_rows is true if the caller needs rows and cannot use sums instead. There are two cases in which rows cannot be used:
--   - Tags are not recorded (g.unknown is not null). Then f fails if needs_rows is true, and otherwise is empty.
--   - Rows were deleted. Then filter_query() fails if needs_rows is true. Otherwise query is null, and gone is the last day
--     without rows.
-- If the only condition is that a row has one of some tags, by_tags has these tags: the numbers can be read from tag_days.
--
-- Rows of the site are read once, into s, and joined by hash (see filter_rows()). If all conditions concern only rows of the
-- site, rows of pages are joined with rows of the site day by day. Then the rows of the site are read again. But the hash of
-- one day stays in the processor's cache, which saves four times as much time as this costs. If no visitor is left out, and the
-- requested pages have only a few rows, each row is looked up instead.
CREATE FUNCTION filter_query(app text, site text, from_day integer, to_day integer, conditions text[], needs_rows boolean, needs_tags boolean DEFAULT true,
                             asked bigint[] DEFAULT NULL, OUT of_app integer, OUT site_id bigint, OUT sites bigint[], OUT by_tags integer[], OUT gone integer, OUT query text)
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    most      CONSTANT integer := 2000000;
    few       CONSTANT integer := 20; -- this many rows are read in the time of one look-up
    filters   boolean;
    condition text;
    c         record;
    ofs       text[] := '{true}'; -- conditions on rows of the site
    joins     text[] := '{true}'; -- conditions on other tables: rows of pages on the same day, and g
    unknown   text   := 'NULL::integer';
    kept      integer;
    read      bigint; -- number of rows of the site
    everybody boolean;
BEGIN
    IF cardinality(conditions) > 8 THEN
        PERFORM filter_fault('there are %s conditions: at most 8 are possible', cardinality(conditions)::text);
    END IF;
    SELECT a.id, a.filters, CASE
               WHEN filter_query.site = '' THEN ARRAY(SELECT p.id FROM pages AS p WHERE p.app_id = a.id AND p.site_id IS NULL AND p.uri <> '(events)' LIMIT 1001)
               ELSE ARRAY(SELECT p.id FROM pages AS p WHERE p.app_id = a.id AND p.key = page_key(as_stored(filter_query.site)) AND p.site_id IS NULL)
           END
    INTO of_app, filters, sites
    FROM apps AS a
    WHERE a.name = filter_query.app;
    IF of_app IS NULL OR sites = '{}' AND conditions <> '{}' THEN
        PERFORM filter_fault('nothing was counted for %s yet', coalesce(nullif(site, ''), app));
    ELSIF cardinality(sites) > 1000 THEN
        PERFORM filter_fault('app %s has more than 1,000 sites: choose one of them', app);
    ELSIF cardinality(sites) = 1 THEN
        site_id := sites[1];
    END IF;
    IF needs_tags AND NOT filters THEN
        PERFORM filter_fault('filters of app %s are off: footfall app set %s --filters on', app, app);
    END IF;

    FOREACH condition IN ARRAY coalesce(conditions, '{}') LOOP
        c := filter_condition(of_app, app, site, condition);
        IF c.tagged AND NOT filters THEN
            PERFORM filter_fault('filters of app %s are off: footfall app set %s --filters on', app, app);
        ELSIF c.pages IS NOT NULL THEN
            joins := joins || format('%sEXISTS (SELECT FROM visits AS p WHERE p.page_id = ANY (%L) AND p.day_id BETWEEN %s AND %s AND p.day_id = s.day_id AND p.ip = s.ip)',
                                     CASE WHEN c.negated THEN 'NOT ' END, c.pages, from_day, to_day);
        ELSE
            ofs := ofs || c.asks;
        END IF;
        needs_tags := needs_tags OR c.tagged;
        by_tags := CASE WHEN cardinality(conditions) = 1 AND site <> '' THEN c.tags END;
    END LOOP;

    PERFORM FROM visits WHERE false; -- locks only the parent table, and reads no partition
    kept := visits_kept_from(of_app);
    gone := (SELECT max(d.day_id) FROM days AS d WHERE d.page_id = ANY (sites) AND d.day_id BETWEEN from_day AND least(to_day, kept - 1));
    IF gone IS NOT NULL THEN
        PERFORM filter_kept(app, of_app) WHERE needs_rows;
        RETURN;
    END IF;
    read := (SELECT sum(d.pv) FROM days AS d WHERE d.page_id = ANY (sites) AND d.day_id BETWEEN from_day AND to_day);
    IF read > most THEN
        PERFORM filter_fault('these days have more than 2,000,000 visitors, counting each once a day, too many for one response: choose fewer days');
    END IF;
    query := format('SELECT v.day_id, v.ip, v.previous_day, v.tags FROM %s WHERE %s(%s)',
                    CASE
                        WHEN site_id IS NOT NULL THEN 'visits AS v'
                        ELSE filter_sites(sites, from_day, to_day, needs_tags)
                    END,
                    CASE WHEN site_id IS NOT NULL THEN format('v.page_id = %s AND v.day_id BETWEEN %s AND %s AND ', site_id, from_day, to_day) END,
                    CASE WHEN needs_tags THEN 'v.tags IS NULL OR ' ELSE '' END || array_to_string(ofs, ' AND '));
    IF needs_tags THEN
        unknown := '(SELECT max(s.day_id) FROM s WHERE s.tags IS NULL)';
        joins[1] := CASE WHEN needs_rows THEN '(SELECT filter_known(g.unknown) FROM g)' ELSE '(SELECT g.unknown IS NULL FROM g)' END;
    END IF;
    everybody := NOT needs_tags AND conditions = '{}' AND site_id IS NOT NULL;
    query := format('WITH s AS %sMATERIALIZED (%s), g AS (SELECT %s AS unknown), f AS %sMATERIALIZED (SELECT s.day_id, s.ip, s.previous_day, s.tags FROM s WHERE %s), '
                    'v AS (SELECT f.ip, count(*) AS pv, count(*) FILTER (WHERE f.previous_day = 0) AS fresh FROM f GROUP BY f.ip), a AS (%s), '
                    'p AS NOT MATERIALIZED (SELECT p.page_id, p.day_id, p.ip, p.previous_day FROM %s)',
                    CASE WHEN everybody THEN 'NOT ' END, query, unknown, CASE WHEN cardinality(joins) = 1 THEN 'NOT ' END, array_to_string(joins, ' AND '),
                    CASE
                        WHEN everybody THEN format('SELECT t.uniques AS visitors FROM targets_sums(ARRAY[%s], %s, %s) AS t', site_id, from_day, to_day)
                        ELSE 'SELECT count(*) AS visitors FROM v'
                    END,
                    CASE
                        WHEN everybody AND few * (SELECT sum(d.pv) FROM days AS d WHERE d.page_id = ANY (asked) AND d.day_id BETWEEN from_day AND to_day) < read
                        THEN format('filter_few(%s, %L, %s, %s) AS p', site_id, asked, from_day, to_day)
                        WHEN site_id IS NOT NULL AND cardinality(joins) = 1
                        THEN format('visits AS p JOIN visits AS v ON v.day_id = p.day_id AND v.ip = p.ip '
                                    'WHERE v.page_id = %s AND v.day_id BETWEEN %s AND %s AND %s AND p.day_id BETWEEN %2$s AND %3$s',
                                    site_id, from_day, to_day, array_to_string(joins[1] || ofs, ' AND '))
                        ELSE format('visits AS p JOIN f ON f.day_id = p.day_id AND f.ip = p.ip WHERE p.day_id BETWEEN %s AND %s', from_day, to_day)
                    END);
END
$$;

COMMENT ON FUNCTION filter_query(text, text, integer, integer, text[], boolean, boolean, bigint[]) IS 'Query for the visitors of a site, or of all sites of an app as one, each on each of their days, who meet all conditions.';

-- The planner knows little about days that have just begun. Without these settings, it looked up rows of pages one by one,
-- which took 200 times as long as a hash join.
CREATE FUNCTION filter_rows(query text) RETURNS SETOF record
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
SET enable_nestloop = off
SET enable_mergejoin = off
SET enable_sort = off
SET enable_partitionwise_join = on
SET jit = off
SET work_mem = '32MB'
AS $$
BEGIN
    RETURN QUERY EXECUTE query;
END
$$;

COMMENT ON FUNCTION filter_rows(text) IS 'Runs a query that begins with the text from filter_query(), and returns its rows.';

-- Reports about the selected visitors, by part, in one pass over their rows:
--   - numbers: totals
--   - days: numbers by day, week or month
--   - tags: the top values of each name, and the visitors without a value
--   - pages: the top pages
--   - events: the top events, where pv is the number of all visitors
--   - since: the last row, with the first day from which everything is recorded (0: all days), and the number of erased
--     visitors from this day on. If the day is not 0, no other row is returned.
-- If there are more than 10,000 events, the part events is left out, or fails if it is the only one. If rows cannot be used,
-- numbers and days for a single tag come from tag_days.
--
-- Rows of pages are joined with u, which has each visitor once with their days. u is smaller than f, and so stays in the
-- processor's cache. A visitor is unbroken if f has all days of the visitor from the first selected day to the last one. Then a
-- row of a page is the first one of the visitor if its previous day is before the first selected day. So such visitors are
-- counted without comparing rows.
--
-- Parts that are not requested are left out of the query, because PostgreSQL compiles the whole query first. This takes half a
-- second for a query that runs for a second.
CREATE FUNCTION filter_panels(app text, site text, from_day integer, to_day integer, conditions text[], parts text[], names text[] DEFAULT '{}',
                              period text DEFAULT 'day', most_values integer DEFAULT 0, most_pages integer DEFAULT 0)
RETURNS TABLE (part text, day_id integer, name text, value text, visitors bigint, new_visitors bigint, pv bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    events  bigint[] := ARRAY( -- of the whole app
        SELECT d.page_id
        FROM days AS d
        WHERE d.site_id = (SELECT p.id FROM pages AS p WHERE p.app_id = (SELECT a.id FROM apps AS a WHERE a.name = app) AND p.key = page_key('(events)') AND p.site_id IS NULL)
          AND d.day_id BETWEEN from_day AND to_day
          AND 'events' = ANY (parts)
        GROUP BY d.page_id
        LIMIT 10001);
    deleted bigint[]; -- the pages (deleted): their rows have no previous day
    days_of CONSTANT text := ', u AS (SELECT f.ip, count(*) AS pv, count(*) FILTER (WHERE f.previous_day = 0) AS fresh, array_agg(f.day_id) AS days, min(f.day_id) AS first_day, '
                             'NOT %8$L AND sum(f.previous_day) - min(f.previous_day) = sum(f.day_id) - max(f.day_id) AS unbroken FROM f GROUP BY f.ip)';
    f       record;
    begins  integer  := from_day;
    unknown integer;
    told    text[];
BEGIN
    IF cardinality(events) > 10000 THEN
        PERFORM filter_fault('these are more than 10,000 events: choose fewer days') WHERE parts = '{events}';
        events := '{}';
    END IF;
    f := filter_query(app, site, from_day, to_day, conditions, false, conditions <> '{}' OR parts && '{tags,since}', events);
    unknown := f.gone;
    deleted := ARRAY(SELECT p.id FROM pages AS s JOIN pages AS p ON p.app_id = s.app_id AND p.key = page_key(s.uri || '/(deleted)')
                     WHERE s.id = ANY (f.sites) AND 'pages' = ANY (parts));
    IF period NOT IN ('day', 'week', 'month') THEN
        RAISE EXCEPTION 'period: % is not possible: use day, week or month', period USING ERRCODE = '22023';
    END IF;
    IF begins = 0 THEN
        begins := (SELECT min(d.day_id) FROM days AS d WHERE d.page_id = ANY (f.sites));
    END IF;
    IF parts = '{events}' AND events = '{}' THEN -- no event on these days, even if some days are not fully recorded
        RETURN;
    END IF;
    IF f.gone IS NULL THEN
        told := ARRAY[
            $x$ SELECT 'unknown' AS part, g.unknown AS day_id, NULL AS name, NULL AS value, 0::bigint AS visitors, 0::bigint AS fresh, 0::bigint AS pv, 0::bigint AS place
                FROM g $x$,
            CASE WHEN 'numbers' = ANY (parts) THEN $x$
                SELECT 'numbers', NULL, NULL, NULL, count(*), coalesce(sum(v.fresh), 0), coalesce(sum(v.pv), 0), 1
                FROM %12$I AS v $x$ END,
            CASE WHEN 'days' = ANY (parts) AND period = 'day' THEN $x$
                SELECT 'days', f.day_id, NULL, NULL, count(*), count(*) FILTER (WHERE f.previous_day = 0), count(*), f.day_id
                FROM f
                GROUP BY f.day_id $x$ END,
            CASE WHEN 'days' = ANY (parts) AND period <> 'day' THEN $x$
                SELECT 'days', w.first_day, NULL, NULL, count(*), sum(w.fresh), sum(w.pv), w.first_day
                FROM (
                    SELECT d.first_day, f.ip, count(*) AS pv, count(*) FILTER (WHERE f.previous_day = 0) AS fresh
                    FROM f
                    JOIN (
                        SELECT o.day_id, greatest(to_char(date_trunc(%1$L, day_date(o.day_id)), 'YYYYMMDD')::integer, %2$L) AS first_day
                        FROM (SELECT f.day_id FROM f GROUP BY f.day_id) AS o
                    ) AS d ON d.day_id = f.day_id
                    GROUP BY d.first_day, f.ip
                ) AS w
                GROUP BY w.first_day $x$ END,
            CASE WHEN 'tags' = ANY (parts) THEN $x$ (
                WITH c AS (
                    SELECT u.tag_id, count(*) AS pv, count(*) FILTER (WHERE u.previous_day = 0) AS fresh
                    FROM (SELECT unnest(f.tags) AS tag_id, f.previous_day FROM f) AS u
                    GROUP BY u.tag_id
                ), t AS (
                    SELECT t.name, t.value, c.pv, c.fresh, row_number() OVER (PARTITION BY t.name ORDER BY c.pv DESC, c.tag_id) AS place
                    FROM c
                    JOIN tags AS t ON t.id = c.tag_id
                    WHERE t.name = ANY (%3$L)
                ), h AS (
                    SELECT t.name, sum(t.pv) AS pv, sum(t.fresh) AS fresh
                    FROM t
                    WHERE NOT %8$L
                    GROUP BY t.name
                    UNION ALL
                    SELECT o.name, count(*), count(*) FILTER (WHERE o.previous_day = 0)
                    FROM (
                        SELECT DISTINCT t.name, u.day_id, u.ip, u.previous_day
                        FROM (SELECT unnest(f.tags) AS tag_id, f.day_id, f.ip, f.previous_day FROM f) AS u
                        JOIN tags AS t ON t.id = u.tag_id
                        WHERE t.name = ANY (%3$L)
                    ) AS o
                    WHERE %8$L
                    GROUP BY o.name
                )
                SELECT 'tags', NULL::integer, t.name, t.value, NULL::bigint, t.fresh, t.pv, t.place
                FROM t
                WHERE t.place <= %4$L
                UNION ALL
                SELECT 'tags', NULL, n.name, '(none)', NULL, n.fresh - coalesce(h.fresh, 0), n.pv - coalesce(h.pv, 0), NULL
                FROM (
                    SELECT unnest(%3$L::text[]) AS name, a.pv, a.fresh
                    FROM (SELECT count(*) AS pv, count(*) FILTER (WHERE f.previous_day = 0) AS fresh FROM f) AS a
                ) AS n
                LEFT JOIN h ON h.name = n.name
            ) $x$ END,
            CASE WHEN 'pages' = ANY (parts) THEN $x$
                SELECT 'pages', NULL, (SELECT h.title FROM titles AS h WHERE h.page_id = n.page_id), o.uri, n.visitors, CASE WHEN n.page_id = ANY (%9$L) THEN 0 ELSE n.fresh END, n.pv, n.place
                FROM (
                    SELECT o.page_id, sum(o.visitors)::bigint AS visitors, sum(o.fresh) AS fresh, sum(o.pv) AS pv,
                           row_number() OVER (ORDER BY sum(o.pv) DESC, o.page_id) AS place
                    FROM (
                        SELECT p.page_id, count(*) AS pv, count(*) FILTER (WHERE p.previous_day = 0) AS fresh,
                               CASE WHEN w.ip IS NULL THEN count(*) FILTER (WHERE p.previous_day < u.first_day) ELSE 1 END AS visitors
                        FROM visits AS p
                        JOIN u ON u.ip = p.ip AND p.day_id = ANY (u.days)
                        CROSS JOIN LATERAL (SELECT CASE WHEN NOT u.unbroken OR p.page_id = ANY (%9$L) THEN p.ip END AS ip) AS w
                        WHERE p.page_id = ANY (ARRAY(SELECT o.id FROM pages AS o WHERE o.site_id = ANY (%7$L)))
                          AND p.day_id BETWEEN %10$s AND %11$s
                        GROUP BY p.page_id, w.ip
                    ) AS o
                    GROUP BY o.page_id
                ) AS n
                CROSS JOIN LATERAL (SELECT o.uri FROM pages AS o WHERE o.id = n.page_id OFFSET 0) AS o
                WHERE n.place <= %5$L $x$ END,
            CASE WHEN 'events' = ANY (parts) THEN $x$
                SELECT 'events', NULL, NULL, substr(o.uri, 10), n.visitors, NULL, (SELECT a.visitors FROM a), n.place
                FROM (
                    SELECT o.page_id, count(*) AS visitors, row_number() OVER (ORDER BY count(*) DESC, o.page_id) AS place
                    FROM (SELECT p.page_id, p.ip FROM p WHERE p.page_id = ANY (%6$L) GROUP BY p.page_id, p.ip) AS o
                    GROUP BY o.page_id
                ) AS n
                CROSS JOIN LATERAL (SELECT o.uri FROM pages AS o WHERE o.id = n.page_id OFFSET 0) AS o
                WHERE n.place <= %4$L $x$ END];
        FOR part, day_id, name, value, visitors, new_visitors, pv IN
            SELECT *
            FROM filter_rows(f.query || format(CASE WHEN 'pages' = ANY (parts) THEN days_of ELSE '' END || '
                SELECT o.part, o.day_id, o.name, o.value, o.visitors, o.fresh::bigint, o.pv::bigint FROM (' || array_to_string(told, ' UNION ALL ') || ') AS o
                 ORDER BY o.part <> ''unknown'', o.part, CASE o.part WHEN ''tags'' THEN array_position(%3$L::text[], o.name) END, o.place',
                period, begins, names, most_values, most_pages, events, f.sites, f.site_id IS NULL, deleted, from_day, to_day,
                CASE WHEN 'pages' = ANY (parts) THEN 'u' ELSE 'v' END))
                AS r (part text, day_id integer, name text, value text, visitors bigint, new_visitors bigint, pv bigint)
        LOOP
            IF part = 'unknown' THEN
                unknown := day_id;
                EXIT WHEN unknown IS NOT NULL;
            ELSE
                RETURN NEXT;
            END IF;
        END LOOP;
    END IF;

    IF 'since' = ANY (parts) THEN
        RETURN QUERY
        SELECT 'since', coalesce(to_char(day_date(unknown) + 1, 'YYYYMMDD')::integer, 0), NULL, NULL, coalesce(sum(e.visitors), 0)::bigint, NULL::bigint, NULL::bigint
        FROM erased_visits AS e
        WHERE e.page_id = ANY (f.sites)
          AND e.day_id BETWEEN greatest(from_day, unknown + 1) AND to_day;
        RETURN;
    ELSIF unknown IS NULL THEN
        RETURN;
    ELSIF f.by_tags IS NULL OR parts && '{tags,pages,events}' THEN
        PERFORM filter_kept(app, f.of_app) WHERE f.gone IS NOT NULL;
        PERFORM filter_known(unknown);
    END IF;

    IF 'numbers' = ANY (parts) THEN
        RETURN QUERY
        SELECT 'numbers', NULL::integer, NULL, NULL, NULL::bigint, coalesce(sum(d.newcomers), 0)::bigint, coalesce(sum(d.pv), 0)::bigint
        FROM tag_days AS d
        WHERE d.page_id = f.site_id
          AND d.day_id BETWEEN from_day AND to_day
          AND d.tag_id = ANY (f.by_tags);
    END IF;
    IF 'days' = ANY (parts) THEN
        RETURN QUERY
        SELECT 'days', w.first_day, NULL, NULL, CASE period WHEN 'day' THEN sum(d.pv)::bigint END, sum(d.newcomers)::bigint, sum(d.pv)::bigint
        FROM tag_days AS d
        CROSS JOIN LATERAL (SELECT greatest(to_char(date_trunc(period, day_date(d.day_id)), 'YYYYMMDD')::integer, begins) AS first_day) AS w
        WHERE d.page_id = f.site_id
          AND d.day_id BETWEEN from_day AND to_day
          AND d.tag_id = ANY (f.by_tags)
        GROUP BY w.first_day
        ORDER BY w.first_day;
    END IF;
END
$$;

COMMENT ON FUNCTION filter_panels(text, text, integer, integer, text[], text[], text[], text, integer, integer) IS 'Reports about the visitors that a filter selects, by part: numbers, days, tags, pages (with titles as names), events, since.';

REVOKE ALL ON FUNCTION filter_panels(text, text, integer, integer, text[], text[], text[], text, integer, integer) FROM PUBLIC;
