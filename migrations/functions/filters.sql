-- Filters: what is asked of the visitors of a site, each on each of their days. Conditions are texts
-- as people write them; what comes out is the text of a query, which has nothing of these texts in
-- it but numbers.

-- The values of a condition, between which a bar stands. In a value %7C, %2A and %21 are a bar, a
-- star and an exclamation mark; %25 before one of these, or before another %25, is a percent sign.
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

COMMENT ON FUNCTION filter_values(text) IS 'The values of a condition of a filter, as they are stored.';

CREATE FUNCTION filter_fault(format text, VARIADIC args text[] DEFAULT '{}') RETURNS void
LANGUAGE plpgsql IMMUTABLE
SET search_path = footfall, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION '%', 'where: ' || format(format, VARIADIC args) USING ERRCODE = '22023';
END
$$;

COMMENT ON FUNCTION filter_fault(text, text[]) IS 'Fails with what is wrong with a filter.';

-- Is asked of the last day on which it is not known of somebody with what they came.
CREATE FUNCTION filter_known(unknown integer) RETURNS boolean
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF unknown IS NOT NULL THEN
        PERFORM filter_fault('of %s and before it is not known of everybody with what they came: ask for days after it', day_date(unknown)::text);
    END IF;
    RETURN true;
END
$$;

COMMENT ON FUNCTION filter_known(integer) IS 'True; an error, if there is a day of which it is not known with what its visitors came.';

-- The ids of the values of a tag; those of all other values, too, where the last is (none).
CREATE FUNCTION filter_tags(of_app integer, app text, name text, written text, OUT ids integer[], OUT without integer[])
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    wanted text;
    found  integer[];
BEGIN
    IF NOT EXISTS (SELECT FROM report.tag_names(app) AS n WHERE n.name = filter_tags.name) THEN
        PERFORM filter_fault('%s is nothing to ask for: there are page, event, new, returning, %s', quote_ident(name),
                             (SELECT string_agg(n.name, ', ') FROM report.tag_names(app) AS n));
    END IF;
    ids := '{}';
    FOREACH wanted IN ARRAY filter_values(written) LOOP
        IF wanted = '(none)' THEN
            without := ARRAY(SELECT t.id FROM tags AS t WHERE t.app_id = of_app AND t.name = filter_tags.name);
            CONTINUE;
        END IF;
        found := ARRAY(SELECT t.id FROM tags AS t WHERE t.app_id = of_app AND t.name = filter_tags.name AND lower(t.value) = lower(wanted));
        IF found = '{}' THEN
            PERFORM filter_fault('nobody ever came with %s "%s": there are %s', name, wanted,
                                 coalesce((SELECT string_agg(t.value, ', ') FROM (
                                     SELECT t.value FROM tags AS t WHERE t.app_id = of_app AND t.name = filter_tags.name ORDER BY t.value = '(other)', t.id LIMIT 10) AS t), 'no values'));
        END IF;
        ids := ids || found;
    END LOOP;
END
$$;

COMMENT ON FUNCTION filter_tags(integer, text, text, text) IS 'The tags that a condition names; without: those of its name, where (none) is among its values.';

-- The pages of a site, or the events of its app.
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
            PERFORM filter_fault('%s is no path: a page is asked for as in page:/home', quote_ident(part));
        END IF;
        below := NOT is_event AND part LIKE '%/*';
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
            PERFORM filter_fault('nobody ever did "%s": there are %s', part,
                                 coalesce((SELECT string_agg(split_part(e.uri, '/', 2), ', ') FROM (
                                     SELECT e.uri FROM pages AS s JOIN pages AS e ON e.site_id = s.id
                                     WHERE s.app_id = of_app AND s.key = page_key('(events)') ORDER BY e.id LIMIT 10) AS e), 'no events'));
        ELSIF found = '{}' THEN
            PERFORM filter_fault('%s has no page %s: a page is asked for by its path, as in page:/home, all below one as in page:/docs/*', site, part);
        END IF;
        ids := ids || found;
    END LOOP;
    IF cardinality(ids) > 100000 THEN
        PERFORM filter_fault('these are more than 100,000 pages: ask for fewer');
    END IF;
    RETURN ids;
END
$$;

COMMENT ON FUNCTION filter_pages(integer, text, boolean, text) IS 'The pages of a site, or events of its app, that a condition names.';

-- Whether a row has one of some tags. Few are compared one by one, many are looked up.
CREATE FUNCTION filter_has(ids integer[]) RETURNS text
LANGUAGE sql IMMUTABLE STRICT
SET search_path = footfall, pg_temp
AS $$
    SELECT CASE
               WHEN cardinality(ids) <= 8 THEN format('v.tags && %L', ids)
               ELSE format('EXISTS (SELECT FROM unnest(v.tags) AS t (id) WHERE t.id = ANY (%L))', ids)
           END
$$;

COMMENT ON FUNCTION filter_has(integer[]) IS 'The text of a condition on visits v: that its row has one of some tags.';

-- From which day on rows of visits are there, as far as days go that are let go.
CREATE FUNCTION visits_kept_from(app integer) RETURNS integer
LANGUAGE sql STABLE
SET search_path = footfall, pg_temp
AS $$
    SELECT greatest(coalesce((SELECT k.from_day FROM visits_kept AS k WHERE k.app_id = app), 0), last_dropped_day() + 1)
$$;

COMMENT ON FUNCTION visits_kept_from(integer) IS 'No row of an app''s visits has gone of days from this one on, but for those of erased visitors.';

-- What a condition asks of rows v of sites (asks), or on which of some pages a visitor has to have been
-- on the day (pages). tags are those that a row has to have, if it is no more than that; tagged tells
-- that rows are asked for tags at all.
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
    ELSIF written = '' THEN
        PERFORM filter_fault('"%s" is no condition: write one like source:google, country:de|at, !device:phone, page:/home, event:signup, new or returning',
                             condition);
    ELSIF name IN ('page', 'event') THEN
        pages := filter_pages(of_app, site, name = 'event', written);
    ELSE
        named := filter_tags(of_app, app, regexp_replace(name, '^tag\.', ''), written);
        asks := format('%s(%s%s)', CASE WHEN negated THEN 'NOT ' END, filter_has(named.ids), ' OR NOT ' || filter_has(named.without));
        tags := CASE WHEN NOT negated AND named.without IS NULL THEN named.ids END;
        tagged := true;
    END IF;
END
$$;

COMMENT ON FUNCTION filter_condition(integer, text, text, text) IS 'What a condition of a filter asks of a row of a site, or of pages beside it.';

-- Rows v of several sites as those of one: a visitor of a day once, with the tags of all their visits
-- of that day, who is new where they had been at none of the sites before. All of them are known by
-- their first days; a row of days that are asked for does not tell of the other sites.
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

COMMENT ON FUNCTION filter_sites(bigint[], integer, integer, boolean) IS 'The text of what stands behind FROM for the visitors of several sites, each on each of their days.';

-- The visitors of a site whom a filter selects, each on each of their days: f (day_id, ip,
-- previous_day, tags) in what stands behind WITH; g.known has to be asked for, which fails where it is
-- not known of all with what they came. Who neither needs tags nor has a condition of them is told of
-- all days whose rows are there. The site '' is all sites of the app as one. query is null where the
-- filter is one tag alone, the rows are gone, and the caller can do without: by_tags are the tags of
-- which tag_days tells then.
--
-- Rows are read once, into f, and joined by hash. Left to the planner, which knows little of days that
-- have just begun, pages were looked up row by row, and took 200 times as long.
CREATE FUNCTION filter_query(app text, site text, from_day integer, to_day integer, conditions text[], needs_rows boolean, needs_tags boolean DEFAULT true,
                             OUT of_app integer, OUT site_id bigint, OUT sites bigint[], OUT by_tags integer[], OUT query text)
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    most      CONSTANT integer := 2000000;
    filters   boolean;
    condition text;
    c         record;
    ofs       text[] := '{true}'; -- of the site's rows
    joins     text[] := '{}';     -- of rows of pages beside them
    known     text   := 'true';
    kept      integer;
BEGIN
    IF cardinality(conditions) > 8 THEN
        PERFORM filter_fault('there are %s conditions: 8 are the most', cardinality(conditions)::text);
    END IF;
    SELECT a.id, a.filters, CASE
               WHEN filter_query.site = '' THEN ARRAY(SELECT p.id FROM pages AS p WHERE p.app_id = a.id AND p.site_id IS NULL AND p.uri <> '(events)' LIMIT 1001)
               ELSE ARRAY(SELECT p.id FROM pages AS p WHERE p.app_id = a.id AND p.key = page_key(as_stored(filter_query.site)) AND p.site_id IS NULL)
           END
    INTO of_app, filters, sites
    FROM apps AS a
    WHERE a.name = filter_query.app;
    IF coalesce(cardinality(sites), 0) = 0 THEN
        PERFORM filter_fault('app %s has no site %s: filters are of the visitors of a site', app, site);
    ELSIF cardinality(sites) > 1000 THEN
        PERFORM filter_fault('app %s has more than 1,000 sites: ask for one of them', app);
    ELSIF cardinality(sites) = 1 THEN
        site_id := sites[1];
    END IF;
    IF needs_tags AND NOT filters THEN
        PERFORM filter_fault('filters of app %s are off: footfall app set %1$s --filters on', app);
    END IF;

    FOREACH condition IN ARRAY coalesce(conditions, '{}') LOOP
        c := filter_condition(of_app, app, site, condition);
        IF c.tagged AND NOT filters THEN
            PERFORM filter_fault('filters of app %s are off: footfall app set %1$s --filters on', app);
        ELSIF c.pages IS NOT NULL THEN
            joins := joins || format('%sEXISTS (SELECT FROM visits AS p WHERE p.page_id = ANY (%L) AND p.day_id BETWEEN %s AND %s AND p.day_id = s.day_id AND p.ip = s.ip)',
                                     CASE WHEN c.negated THEN 'NOT ' END, c.pages, from_day, to_day);
        ELSE
            ofs := ofs || c.asks;
        END IF;
        needs_tags := needs_tags OR c.tagged;
        by_tags := CASE WHEN cardinality(conditions) = 1 AND site <> '' THEN c.tags END;
    END LOOP;

    PERFORM FROM visits WHERE false; -- of no day: locks the parent alone
    kept := visits_kept_from(of_app);
    IF by_tags IS NOT NULL AND NOT needs_rows
       AND (EXISTS (SELECT FROM days AS d WHERE d.page_id = filter_query.site_id AND d.day_id BETWEEN from_day AND least(to_day, kept - 1))
            OR EXISTS (SELECT FROM visits AS v WHERE v.page_id = filter_query.site_id AND v.day_id BETWEEN from_day AND to_day AND v.tags IS NULL)) THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM days AS d WHERE d.page_id = ANY (sites) AND d.day_id BETWEEN from_day AND least(to_day, kept - 1)) THEN
        PERFORM filter_fault('of days before %s it is not kept who came: ask for days from then on; footfall app set %s --retain-days keeps more',
                             day_date(kept)::text, app);
    END IF;
    IF (SELECT sum(d.pv) FROM days AS d WHERE d.page_id = ANY (sites) AND d.day_id BETWEEN from_day AND to_day) > most THEN
        PERFORM filter_fault('these days have more than 2,000,000 visitors, each on each of their days, too many for one answer: choose fewer days');
    END IF;
    query := format('SELECT v.day_id, v.ip, v.previous_day, v.tags FROM %s WHERE %s(%s)',
                    CASE
                        WHEN site_id IS NOT NULL THEN 'visits AS v'
                        ELSE filter_sites(sites, from_day, to_day, needs_tags)
                    END,
                    CASE WHEN site_id IS NOT NULL THEN format('v.page_id = %s AND v.day_id BETWEEN %s AND %s AND ', site_id, from_day, to_day) END,
                    CASE WHEN needs_tags THEN 'v.tags IS NULL OR ' ELSE '' END || array_to_string(ofs, ' AND '));
    IF needs_tags THEN
        known := format('filter_known((SELECT max(t.day_id) FROM %s AS t WHERE t.tags IS NULL))', CASE joins WHEN '{}' THEN 'f' ELSE 's' END);
    END IF;
    IF joins = '{}' THEN
        query := format('WITH f AS %s(%s), g AS (SELECT %s AS known)', CASE WHEN needs_tags OR cardinality(conditions) > 0 OR site_id IS NULL THEN 'MATERIALIZED ' END, query, known);
    ELSE
        query := format('WITH s AS MATERIALIZED (%s), g AS (SELECT %s AS known), '
                        'f AS (SELECT s.day_id, s.ip, s.previous_day, s.tags FROM s WHERE %s)', query, known, array_to_string(joins, ' AND '));
    END IF;
END
$$;

COMMENT ON FUNCTION filter_query(text, text, integer, integer, text[], boolean, boolean) IS 'The query of the visitors of a site, or of all sites of an app as one, each on each of their days, for whom conditions hold.';
