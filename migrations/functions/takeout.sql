-- The export of an app: each view here is a file, with the columns of the view after app_id. The ids of targets, tags and
-- imports are those of this database, and only serve to link rows. When an export is loaded, the rows of most files are copied
-- directly to a table, in the order of the view. Where a view has an order, it is that of an index of the table, so that
-- writes are not scattered. load_app() writes the rows of the other files.
--
-- If the export has a secret (footfall.takeout_secret has its id), addresses of visitors are hashed during the export. The
-- views then show the app's settings as they will be after loading.

CREATE VIEW takeout_app AS
SELECT a.id AS app_id, a.name, a.tz, a.ipv6_prefix, a.access, a.sites, a.keep_query, a.created_at,
       CASE WHEN a.visitor = 'address' AND s.id <> '' THEN 'hashed' ELSE a.visitor END AS visitor,
       coalesce(a.secret_id, decode(nullif(s.id, ''), 'hex'))                          AS secret_id,
       coalesce(a.hashed_as, a.id)                                                     AS hashed_as,
       CASE WHEN a.visitor = 'address' AND s.id <> '' THEN visits_kept_from(a.id) ELSE a.hashed_from END AS hashed_from,
       a.respect_dnt, a.bots, a.max_requests, a.max_new_pages, a.retain_days, a.forget_days, a.public_counts, a.tags, a.filters, a.goals,
       a.titles, a.public_top, a.public_events, k.from_day AS kept_from
FROM apps AS a
LEFT JOIN visits_kept AS k ON k.app_id = a.id
CROSS JOIN (SELECT coalesce(current_setting('footfall.takeout_secret', true), '') AS id) AS s;

COMMENT ON VIEW takeout_app IS 'The app and its settings, in one row, as app set has them. visitor: how visitors are identified; secret_id: identifies the secret of their hashes without revealing it; hashed_as: the number of the app in these hashes; hashed_from: sketches of earlier days were made from addresses; kept_from: rows of visits are there from this day on (empty: of all days).';

CREATE VIEW takeout_targets AS
SELECT p.app_id, p.id AS target, p.site_id AS site, p.uri, p.created_at, c.hot, c.pv, c.uv, t.title, t.told_at AS titled_at
FROM pages AS p
LEFT JOIN counters AS c ON c.page_id = p.id
LEFT JOIN titles AS t   ON t.page_id = p.id
ORDER BY p.id;

COMMENT ON VIEW takeout_targets IS 'Pages and sites. target: its number in the other files; site: the number of its site (empty: it is a site); uri: without a scheme; created_at: when Footfall counted its first visit, which may be of an earlier day (days.csv has its days); hot: page views; pv: visits, one for each visitor and day; uv: visitors; title and titled_at: the title of the page, and since when.';

CREATE VIEW takeout_days AS
SELECT p.app_id, d.page_id AS target, d.day_id AS day, d.hot, d.pv, d.new_visitors
FROM pages AS p
JOIN days AS d ON d.page_id = p.id
ORDER BY d.page_id, d.day_id;

COMMENT ON VIEW takeout_days IS 'Each target on each day, like 20190629. hot: page views; pv: visits, one for each visitor of the day; new_visitors: visitors whose first day it is.';

CREATE VIEW takeout_returns AS
SELECT p.app_id, r.page_id AS target, r.day_id AS day, r.previous_day, r.visitors
FROM pages AS p
JOIN open_returns AS r ON r.page_id = p.id
ORDER BY r.page_id, r.day_id, r.previous_day;

COMMENT ON VIEW takeout_returns IS 'Visitors of a target on a day, by the last earlier day on which they visited it. The visitors of a range are those with a previous day before the range, and the new visitors of its days. Closed days are in packed_returns.';

CREATE VIEW takeout_packed_returns AS
SELECT p.app_id, r.page_id AS target, r.day_id AS day, r.previous_days, r.visitors
FROM pages AS p
JOIN packed_returns AS r ON r.page_id = p.id
ORDER BY r.page_id, r.day_id;

COMMENT ON VIEW takeout_packed_returns IS 'Visitors of a target on a closed day, by the last earlier day on which they visited it, in two strings of bits. previous_days: bit k, from 1, is 1 if the last earlier visit of some visitors was k days before. visitors: a binary number for each of these bits, all of the same length: visitors whose last earlier visit was so many days before, or more.';

CREATE VIEW takeout_tags AS
SELECT t.app_id, t.id AS tag, t.name, t.value
FROM tags AS t
ORDER BY t.id;

COMMENT ON VIEW takeout_tags IS 'Tags of visits. tag: its number in the other files; name: source, country …; value: google, de …';

-- Includes the tags of recent batches that are not in tag_days yet. The export passes the sums of these tags in
-- footfall.takeout_news.
CREATE VIEW takeout_tag_days AS
SELECT p.app_id, d.page_id AS target, d.day_id AS day, d.tag_id AS tag, sum(d.pv)::bigint AS pv, sum(d.newcomers)::bigint AS newcomers
FROM pages AS p
JOIN (SELECT t.page_id, t.day_id, t.tag_id, t.pv, t.newcomers
      FROM tag_days AS t
      UNION ALL
      SELECT n.page_id, n.day_id, n.tag_id, n.pv, n.newcomers
      FROM jsonb_to_recordset(coalesce(nullif(current_setting('footfall.takeout_news', true), ''), '[]')::jsonb)
          AS n (page_id bigint, day_id integer, tag_id integer, pv bigint, newcomers bigint)) AS d ON d.page_id = p.id
GROUP BY p.app_id, d.page_id, d.day_id, d.tag_id
ORDER BY d.page_id, d.day_id, d.tag_id;

COMMENT ON VIEW takeout_tag_days IS 'Visitors of a target on a day, by tag. pv: visits, one for each visitor of the day; newcomers: visitors whose first visit ever had the tag.';

CREATE VIEW takeout_notes AS
SELECT n.app_id, n.day_id AS day, n.site, n.text
FROM notes AS n
ORDER BY n.day_id, n.id;

COMMENT ON VIEW takeout_notes IS 'Notes about days. site: the note is only about this site.';

CREATE VIEW takeout_offsets AS
SELECT o.app_id, o.uri, o.hot, o.pv, o.uv, o.told, o.history_hot, o.history_pv, o.history_uv, o.by_hand
FROM offsets AS o
ORDER BY o.uri;

COMMENT ON VIEW takeout_offsets IS 'Numbers from elsewhere, which are added to totals and ranks. told: earlier values of uv, as pairs: the last visitor for whom a value was used, and the value. history_hot, history_pv, history_uv: the part of these numbers that is from history; by_hand: the rest was set by hand.';

CREATE VIEW takeout_history AS
SELECT i.app_id, i.id AS import, i.imported_at, i.source, i.files, d.day_id AS day, d.site, h.uri, h.page_views, h.visits, h.visitors,
       h.new_visitors, h.uv, d.in_totals
FROM history_imports AS i
JOIN history_days AS d ON d.app_id = i.app_id AND d.import_id = i.id
JOIN history AS h      ON h.day = d.id
ORDER BY d.id, h.uri;

COMMENT ON VIEW takeout_history IS 'Numbers by day from other programs. import, imported_at, source, files: the import; day, site, uri: the day and target; page_views, visits (sessions), visitors, new_visitors: the numbers, empty if not reported; uv: visitors without an earlier day in the import; in_totals: offsets contain the day.';

CREATE VIEW takeout_erased_visitors AS
SELECT p.app_id, e.page_id AS target, e.part, e.place, e.places
FROM pages AS p
JOIN erased_visitors AS e ON e.page_id = p.id
ORDER BY e.page_id, e.part, e.place;

COMMENT ON VIEW takeout_erased_visitors IS 'Ranks of erased or forgotten visitors. place: rank 256 * part + 1 + place; or places: for each bit n that is 1, from 0, rank 256 * part + 1 + n.';

CREATE VIEW takeout_erased_visits AS
SELECT p.app_id, e.page_id AS target, e.day_id AS day, e.previous_day, e.visitors
FROM pages AS p
JOIN erased_visits AS e ON e.page_id = p.id
ORDER BY e.page_id, e.day_id, e.previous_day;

COMMENT ON VIEW takeout_erased_visits IS 'Erased visitors of a target on a day, by the last earlier day on which they visited it (0: none, or unknown).';

CREATE VIEW takeout_visitors AS
SELECT p.app_id, v.ip AS visitor, v.page_id AS target, v.rank, v.first_day, v.last_day
FROM pages AS p
JOIN visitors AS v ON v.page_id = p.id
ORDER BY v.page_id, v.rank;

COMMENT ON VIEW takeout_visitors IS 'Visitors of each target. visitor: a keyed hash; rank: the place in the order of first visits; first_day, last_day: the first and last day of a visit.';

CREATE VIEW takeout_visits AS
SELECT p.app_id, v.ip AS visitor, v.page_id AS target, v.day_id AS day, v.previous_day, v.tags
FROM pages AS p
JOIN visits AS v            ON v.page_id = p.id
LEFT JOIN visits_kept AS k ON k.app_id = p.app_id
WHERE v.day_id >= coalesce(k.from_day, 0);

COMMENT ON VIEW takeout_visits IS 'Days of visitors, as far as they are kept. previous_day: the last earlier day (0: none, or unknown); tags: for sites, the tags of the visit (empty: not recorded).';

CREATE VIEW takeout_sketches AS
SELECT p.app_id, s.page_id AS target, s.day_id AS day, s.entries
FROM pages AS p
JOIN sketches AS s          ON s.page_id = p.id
JOIN apps AS a              ON a.id = p.app_id
LEFT JOIN visits_kept AS k ON k.app_id = p.app_id
WHERE a.visitor <> 'address'
   OR s.day_id < coalesce(k.from_day, 0)
ORDER BY s.page_id, s.day_id;

COMMENT ON VIEW takeout_sketches IS 'HyperLogLog sketches of the visitors of a target on a day. entries: registers that are not 0, as register * 64 + value.';

-- If an id has rows in both periods, the row of the present period is exported.
CREATE VIEW takeout_people AS
SELECT p.app_id, p.id AS visitor, p.person, p.height, p.tag_ids AS tags
FROM people AS p
WHERE p.period = people_period()
   OR NOT EXISTS (SELECT FROM people AS o WHERE o.period = people_period() AND o.app_id = p.app_id AND o.id = p.id);

COMMENT ON VIEW takeout_people IS 'Ids of visitors and persons. visitor leads to person, which is another id (empty: it is a person); height: the maximum number of steps that lead to it; tags: the tags of the person.';

CREATE VIEW takeout_ignored AS
SELECT a.id AS app_id, i.who
FROM apps AS a
CROSS JOIN LATERAL unnest(a.ignore) AS i (who);

COMMENT ON VIEW takeout_ignored IS 'Visits that are not counted: networks, ids of visitors, and referring hosts.';

-- Starts loading an app, in a transaction: makes a temporary table for each file whose rows are not copied directly to their
-- final table.
CREATE FUNCTION begin_load() RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
SET client_min_messages = warning
AS $$
DECLARE
    part text;
BEGIN
    FOREACH part IN ARRAY ARRAY['app', 'targets', 'tags', 'ignored', 'notes', 'offsets', 'history', 'people'] LOOP
        EXECUTE format('CREATE TEMPORARY TABLE %I (LIKE %I) ON COMMIT DROP', 'loaded_' || part, 'takeout_' || part);
    END LOOP;
END
$$;

COMMENT ON FUNCTION begin_load() IS 'Makes a temporary table loaded_… for each view takeout_… whose rows load_app() reads.';

CREATE FUNCTION number_load() RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
SET client_min_messages = warning
AS $$
BEGIN
    CREATE TEMPORARY TABLE target_map ON COMMIT DROP AS
    SELECT t.target, nextval('pages_id_seq') AS id
    FROM (SELECT l.target FROM loaded_targets AS l ORDER BY l.target) AS t;
    ALTER TABLE target_map ADD PRIMARY KEY (target);
    CREATE TEMPORARY TABLE tag_map ON COMMIT DROP AS
    SELECT t.tag, nextval('tags_id_seq')::integer AS id
    FROM (SELECT l.tag FROM loaded_tags AS l ORDER BY l.tag) AS t;
    ALTER TABLE tag_map ADD PRIMARY KEY (tag);
    ANALYZE loaded_targets, target_map, tag_map;
    CREATE TEMPORARY TABLE numbers ON COMMIT DROP AS
    SELECT false AS of_tag, m.target AS old, m.id AS new, coalesce(o.id, 0) AS site
    FROM target_map AS m
    JOIN loaded_targets AS t  ON t.target = m.target
    LEFT JOIN target_map AS o ON o.target = t.site
    UNION ALL
    SELECT true, m.tag, m.id, 0
    FROM tag_map AS m;
    ALTER TABLE numbers ADD PRIMARY KEY (of_tag, old);
END
$$;

COMMENT ON FUNCTION number_load() IS 'Assigns new ids of this database to the copied targets and tags.';

CREATE FUNCTION loaded_numbers(tags boolean, after bigint, portion integer) RETURNS TABLE (old bigint, new bigint, site bigint)
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT n.old, n.new, n.site
    FROM numbers AS n
    WHERE n.of_tag = tags
      AND n.old > after
    ORDER BY n.old
    LIMIT portion;
END
$$;

COMMENT ON FUNCTION loaded_numbers(boolean, bigint, integer) IS 'Ids of targets or tags in the copied rows, in order, with their new ids from number_load(), and the new ids of their sites (0: it is a site).';

-- Rows of large tables are written first, with the ids from number_load(), because no other session finds them before the
-- pages exist. Changes that make other transactions wait come last: those of epochs, and of the constraint of batches.
CREATE FUNCTION load_app(named text) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
SET work_mem = '64MB'
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    app     integer := nextval('apps_id_seq');
    present smallint := people_period();
    day     integer;
BEGIN
    IF (SELECT count(*) FROM loaded_app) <> 1 THEN
        RAISE EXCEPTION 'app.csv must have exactly one row' USING ERRCODE = '22023';
    END IF;
    INSERT INTO counters (page_id, hot, pv, uv)
    SELECT m.id, l.hot, l.pv, l.uv
    FROM loaded_targets AS l
    LEFT JOIN target_map AS m ON m.target = l.target
    WHERE l.hot IS NOT NULL
    ORDER BY m.id;
    INSERT INTO people (app_id, period, height, id, person, tag_ids)
    SELECT app, present, l.height, l.visitor, l.person, l.tags
    FROM loaded_people AS l
    ORDER BY l.visitor;

    -- With this lock, a transaction that closes a day has either ended, or waits and will find the loaded visits. The row of
    -- erasures is locked before the epoch of apps, as in all transactions that erase.
    PERFORM FROM epochs WHERE name = 'erasures' FOR UPDATE;
    INSERT INTO apps (id, name, tz, ipv6_prefix, access, sites, keep_query, created_at, visitor, secret_id, hashed_as, hashed_from, respect_dnt,
                      bots, ignore, max_requests, max_new_pages, retain_days, forget_days, public_counts, tags, filters, goals, titles,
                      public_top, public_events)
    OVERRIDING SYSTEM VALUE
    SELECT app, named, l.tz, l.ipv6_prefix, l.access, l.sites, l.keep_query, l.created_at, l.visitor, l.secret_id,
           CASE WHEN l.visitor <> 'address' THEN l.hashed_as END, coalesce(l.hashed_from, 0), l.respect_dnt, l.bots,
           ARRAY(SELECT i.who FROM loaded_ignored AS i), l.max_requests, l.max_new_pages, l.retain_days, l.forget_days, l.public_counts, l.tags,
           l.filters, l.goals, l.titles, coalesce(l.public_top, false), coalesce(l.public_events, '{}')
    FROM loaded_app AS l;
    INSERT INTO pages (id, site_id, app_id, created_at, uri)
    OVERRIDING SYSTEM VALUE
    SELECT m.id, o.id, app, l.created_at,
           CASE WHEN l.uri = s.uri || '/(deleted) ' || l.target THEN s.uri || '/(deleted) ' || m.id ELSE l.uri END -- an interrupted deletion
    FROM loaded_targets AS l
    JOIN target_map AS m          ON m.target = l.target
    LEFT JOIN target_map AS o     ON o.target = l.site
    LEFT JOIN loaded_targets AS s ON s.target = l.site AND s.site IS NULL
    ORDER BY m.id;
    INSERT INTO titles (page_id, title, told_at)
    SELECT m.id, l.title, l.titled_at
    FROM loaded_targets AS l
    JOIN target_map AS m ON m.target = l.target
    WHERE l.title IS NOT NULL;
    INSERT INTO tags (id, app_id, name, value)
    OVERRIDING SYSTEM VALUE
    SELECT m.id, app, l.name, l.value
    FROM loaded_tags AS l
    JOIN tag_map AS m ON m.tag = l.tag;
    INSERT INTO visits_kept (app_id, from_day, gone_before)
    SELECT app, l.kept_from, l.kept_from
    FROM loaded_app AS l
    WHERE l.kept_from IS NOT NULL;
    INSERT INTO notes (app_id, day_id, site, text)
    SELECT app, l.day, l.site, l.text
    FROM loaded_notes AS l;
    INSERT INTO offsets (app_id, hot, pv, uv, uri, told, history_hot, history_pv, history_uv, by_hand)
    SELECT app, l.hot, l.pv, l.uv, l.uri, l.told, coalesce(l.history_hot, 0), coalesce(l.history_pv, 0), coalesce(l.history_uv, 0), coalesce(l.by_hand, false)
    FROM loaded_offsets AS l;
    CREATE TEMPORARY TABLE import_map ON COMMIT DROP AS
    SELECT l.import, l.day, l.site, l.in_totals, dense_rank() OVER (ORDER BY l.import) AS place, 0 AS import_id, nextval('history_days_id_seq') AS id
    FROM (SELECT DISTINCT h.import, h.day, h.site, coalesce(h.in_totals, false) AS in_totals FROM loaded_history AS h) AS l;
    UPDATE import_map AS m
    SET import_id = i.id
    FROM (SELECT d.import, nextval('history_imports_id_seq') AS id
          FROM (SELECT DISTINCT n.import FROM import_map AS n ORDER BY n.import) AS d) AS i
    WHERE i.import = m.import;
    INSERT INTO history_imports (app_id, id, imported_at, source, files)
    OVERRIDING SYSTEM VALUE
    SELECT DISTINCT app, m.import_id, l.imported_at, l.source, l.files
    FROM loaded_history AS l
    JOIN import_map AS m ON m.import = l.import;
    INSERT INTO history_days (id, app_id, import_id, day_id, site, in_totals)
    OVERRIDING SYSTEM VALUE
    SELECT m.id, app, m.import_id, m.day, m.site, m.in_totals
    FROM import_map AS m;
    INSERT INTO history (day, uri, page_views, visits, visitors, new_visitors, uv)
    SELECT m.id, l.uri, l.page_views, l.visits, l.visitors, l.new_visitors, l.uv
    FROM loaded_history AS l
    JOIN import_map AS m ON m.import = l.import AND m.day = l.day AND m.site = l.site;

    FOR day IN SELECT DISTINCT d.day_id
               FROM pages AS p
               JOIN days AS d        ON d.page_id = p.id
               JOIN closed_days AS c ON c.day_id = d.day_id
               WHERE p.app_id = app
                 AND p.site_id IS NULL
                 AND d.day_id >= coalesce((SELECT l.kept_from FROM loaded_app AS l), 0)
                 AND NOT EXISTS (SELECT FROM sketches AS s WHERE s.page_id = p.id AND s.day_id = d.day_id) LOOP
        PERFORM make_sketches(day, app);
    END LOOP;
    PERFORM read_anew();
    UPDATE epochs SET value = value + 1 WHERE name = 'erasures' AND EXISTS (SELECT FROM loaded_people);
    IF (SELECT l.visitor <> 'address' FROM loaded_app AS l) THEN
        PERFORM tell_browsers();
    END IF;
END
$$;

COMMENT ON FUNCTION load_app(text) IS 'Makes an app from the rows in the tables of begin_load(), and from those that were copied directly to other tables. Before the call, the days with visits must have partitions, and days that have ended must be closed.';

-- In a cell, the view of a table gives new rows their ids, and the table itself does not. So rows that get new ids are copied
-- to a temporary table, not directly to the table.
CREATE FUNCTION begin_carry(named text, columns text) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
SET client_min_messages = warning
AS $$
BEGIN
    EXECUTE format('CREATE TEMPORARY TABLE %I ON COMMIT DROP AS SELECT %s FROM %I LIMIT 0', 'loaded_' || named, columns, named);
END
$$;

COMMENT ON FUNCTION begin_carry(text, text) IS 'Makes a temporary table loaded_… with these columns of a table, quoted if necessary.';

CREATE FUNCTION end_carry(named text, columns text) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    EXECUTE format('INSERT INTO %I (%s) SELECT %2$s FROM %I ORDER BY ctid', named, columns, 'loaded_' || named);
END
$$;

COMMENT ON FUNCTION end_carry(text, text) IS 'Moves the rows from the table of begin_carry() to their own table, with new ids, in the order in which they were copied.';

REVOKE ALL ON FUNCTION begin_load(), number_load(), loaded_numbers(boolean, bigint, integer), load_app(text), begin_carry(text, text), end_carry(text, text)
    FROM PUBLIC;
