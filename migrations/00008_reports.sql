-- What is read: views and functions in the schema report, and what they rest on once a day is over.
--
-- Views and functions read with their owner's rights, so that who may read them need not be let at the tables.

-- +goose Up

-- Targets by name, in order: text_pattern_ops serves = and prefixes in every locale. Not by app, so that nobody who looks for a key of an
-- app is led here.
CREATE INDEX pages_by_uri ON pages (uri text_pattern_ops);

-- From which day on the rows of an app's visits are all there. Before it they may be gone; the daily numbers stay.
CREATE TABLE visits_kept (
    app_id   integer PRIMARY KEY REFERENCES apps,
    from_day integer NOT NULL
);

COMMENT ON TABLE  visits_kept          IS 'From which day on the visits of each app are kept; an app without a row keeps all.';
COMMENT ON COLUMN visits_kept.app_id   IS 'The app.';
COMMENT ON COLUMN visits_kept.from_day IS 'Every visit of this day and of later ones has its row. Rows of earlier days are gone, or are going.';

-- Which days are over everywhere, and have been summed up for good. Nobody counts for them any more.
CREATE TABLE closed_days (
    day_id    integer     PRIMARY KEY,
    closed_at timestamptz NOT NULL DEFAULT now()
);

COMMENT ON TABLE  closed_days           IS 'Days that are over in every time zone and have their sketches.';
COMMENT ON COLUMN closed_days.day_id    IS 'The day.';
COMMENT ON COLUMN closed_days.closed_at IS 'When its sketches were made.';

-- How many visitors a group of targets had cannot be added up from theirs. A sketch (HyperLogLog, 4,096 registers) is small, and the sketch
-- of a group is made from those of its members. Most are of few visitors: a list of the registers that are not 0 is short.
CREATE TABLE sketches (
    page_id bigint    NOT NULL,
    day_id  integer   NOT NULL,
    entries integer[] NOT NULL,

    PRIMARY KEY (page_id, day_id),
    CONSTRAINT sketches_have_registers CHECK (cardinality(entries) BETWEEN 1 AND 4096)
);

ALTER TABLE sketches ALTER COLUMN entries SET STORAGE EXTERNAL; -- compressing them saves little, and takes long

COMMENT ON TABLE  sketches         IS 'A HyperLogLog sketch of the visitors of each target on each closed day; standard error 1.625 %.';
COMMENT ON COLUMN sketches.page_id IS 'The target.';
COMMENT ON COLUMN sketches.day_id  IS 'The day.';
COMMENT ON COLUMN sketches.entries IS 'The registers that are not 0, each as register * 64 + value, in order.';

-- The first pages of each app and of each site on each closed day, by each number. Which pages were first in a range of days is found from
-- these, without reading them all. Rows may be deleted at any time: then the day is read itself.
CREATE TABLE tops (
    app_id   integer  NOT NULL,
    site_id  bigint   NOT NULL,
    day_id   integer  NOT NULL,
    by       text     NOT NULL,
    page_ids bigint[] NOT NULL,
    numbers  bigint[] NOT NULL,

    PRIMARY KEY (app_id, site_id, day_id, by),
    CONSTRAINT tops_by_is_known CHECK (by IN ('pv', 'uv', 'hot')),
    CONSTRAINT tops_lists_match CHECK (cardinality(page_ids) = cardinality(numbers) AND cardinality(page_ids) <= 1000)
);

COMMENT ON TABLE  tops          IS 'The first 1,000 pages of each app, and of each of its sites, on each closed day.';
COMMENT ON COLUMN tops.app_id   IS 'The app.';
COMMENT ON COLUMN tops.site_id  IS 'The site; 0: all sites of the app.';
COMMENT ON COLUMN tops.day_id   IS 'The day.';
COMMENT ON COLUMN tops.by       IS 'The number by which they are ordered: pv, uv or hot.';
COMMENT ON COLUMN tops.page_ids IS 'The pages, the first first.';
COMMENT ON COLUMN tops.numbers  IS 'Their numbers on that day.';

-- A visitor's hash as a register of a sketch and its value: 12 bits say which register, the zeros that lead the next 32 its value. The
-- hash is sha256(inet_send(ip)), which stays the same in every version of PostgreSQL. It is an argument, so that the function is one
-- expression that is planned into the query.
-- +goose StatementBegin
CREATE FUNCTION sketch_entry(hash bytea) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT (get_byte(hash, 0) * 16 + get_byte(hash, 1) / 16) * 64
               + 33 - length(ltrim((get_byte(hash, 2)::bigint * 16777216 + get_byte(hash, 3) * 65536
                                        + get_byte(hash, 4) * 256 + get_byte(hash, 5))::bit(32)::text, '0'))
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION sketch_entry(bytea) IS 'The register of a HyperLogLog sketch that a visitor falls into, and its value: register * 64 + value, from sha256(inet_send(ip)).';

-- Ertl's estimator (New cardinality estimation algorithms for HyperLogLog sketches, 2017): no bias at small or middling numbers that would
-- have to be corrected. Its other correction, for registers that are full, begins to matter at a thousand million visitors.
-- +goose StatementBegin
CREATE FUNCTION sketch_estimate(used bigint, weight double precision) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    x     double precision := (4096 - used) / 4096.0;
    y     double precision := 1;
    sigma double precision := x;
    last  double precision;
BEGIN
    IF used = 0 THEN
        RETURN 0;
    END IF;
    LOOP
        x := CASE WHEN x < 1e-150 THEN 0 ELSE x * x END; -- where x * x would be too small to be told from 0
        last := sigma;
        sigma := sigma + x * y;
        y := y + y;
        EXIT WHEN sigma = last;
    END LOOP;
    RETURN 4096.0 * 4096.0 / (2 * ln(2.0::double precision)) / (4096 * sigma + weight);
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION sketch_estimate(bigint, double precision) IS 'How many visitors a sketch stands for: from how many registers are not 0, and the sum of 2^-value over them.';

-- Sums up a day that is over everywhere: sketches of its visits, and the first pages of its sites. False: it was done before. Once it is
-- done, the visits themselves are not needed for any report but those that list them.
-- +goose StatementBegin
CREATE FUNCTION close_day(day integer) RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
SET statement_timeout = 0
AS $$
BEGIN
    IF day > to_char(now() AT TIME ZONE 'UTC' - interval '36 hours', 'YYYYMMDD')::integer THEN
        RAISE EXCEPTION 'day % is not over everywhere yet', day USING ERRCODE = '22023';
    END IF;
    INSERT INTO closed_days (day_id) VALUES (day) ON CONFLICT DO NOTHING; -- waits for whoever is closing it
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    WITH hashes AS MATERIALIZED (
        SELECT page_id, sha256(inet_send(ip)) AS hash FROM visits WHERE day_id = day
    ), entries AS MATERIALIZED (
        SELECT page_id, sketch_entry(hash) AS entry FROM hashes
    ), highest AS (
        SELECT page_id, max(entry) AS entry FROM entries GROUP BY page_id, entry / 64
    )
    INSERT INTO sketches (page_id, day_id, entries)
    SELECT page_id, day, array_agg(entry ORDER BY entry)
    FROM highest
    GROUP BY page_id
    ORDER BY page_id;
    PERFORM make_tops(day);
    RETURN true;
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION close_day(integer) IS 'Makes the sketches and the tops of a day like 20190629 that is over; false if it had them.';

-- +goose StatementBegin
CREATE FUNCTION make_tops(day integer) RETURNS void
LANGUAGE sql
SET search_path = footfall, pg_temp
AS $$
    WITH numbers AS MATERIALIZED (
        SELECT s.app_id, d.site_id, d.page_id, n.by, n.number
        FROM pages AS s
        JOIN days AS d ON d.site_id = s.id AND d.day_id = day
        CROSS JOIN LATERAL (VALUES ('pv', d.pv), ('uv', d.uv), ('hot', d.hot)) AS n (by, number)
        WHERE s.site_id IS NULL
          AND n.number > 0
    ), ordered AS (
        SELECT app_id, site_id, page_id, by, number,
               row_number() OVER (PARTITION BY app_id, site_id, by ORDER BY number DESC, page_id) AS place
        FROM numbers
        UNION ALL
        SELECT app_id, 0, page_id, by, number,
               row_number() OVER (PARTITION BY app_id, by ORDER BY number DESC, page_id)
        FROM numbers
    )
    INSERT INTO tops (app_id, site_id, day_id, by, page_ids, numbers)
    SELECT app_id, site_id, day, by, array_agg(page_id ORDER BY place), array_agg(number ORDER BY place)
    FROM ordered
    WHERE place <= 1000
    GROUP BY app_id, site_id, by
    ON CONFLICT DO NOTHING
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION make_tops(integer) IS 'Makes the tops of a day that is over, where they are missing.';

-- Which pages of an app, or of one site, were first in a range of days: exactly, but without reading all of them.
--
-- Each day's list tells the first pages, and its last number is what a page that is not in it can have had at most. Those bounds, added up
-- over the days, tell which listed pages may be among the first; they are added up exactly. If no page that is in no list can
-- have reached the last of them, the answer is proved. If not, longer lists are tried, and then all is read.
-- +goose StatementBegin
CREATE FUNCTION first_pages(app integer, site bigint, from_day integer, to_day integer, measure text, n integer)
RETURNS TABLE (page_id bigint, number numeric)
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    depth   integer := least(greatest(2 * n, 20), 1000);
    scope   bigint[] := ARRAY(SELECT s.id FROM pages AS s WHERE s.app_id = app AND s.site_id IS NULL AND site IN (0, s.id));
    pages   bigint[];
    numbers numeric[];
    proved  boolean;
BEGIN
    LOOP
        WITH counted AS MATERIALIZED (
            SELECT DISTINCT d.day_id
            FROM days AS d
            WHERE d.page_id = ANY (scope)
              AND d.day_id BETWEEN from_day AND to_day
        ), listed AS MATERIALIZED (
            SELECT o.day_id, l.page_id, l.number
            FROM counted AS o
            JOIN tops AS t ON t.app_id = app AND t.site_id = site AND t.day_id = o.day_id AND t.by = measure
            CROSS JOIN LATERAL unnest(t.page_ids[:depth], t.numbers[:depth]) AS l (page_id, number)
            UNION ALL
            SELECT o.day_id, l.page_id, l.number
            FROM counted AS o
            CROSS JOIN LATERAL (
                SELECT d.page_id, CASE measure WHEN 'pv' THEN d.pv WHEN 'uv' THEN d.uv ELSE d.hot END AS number
                FROM days AS d
                WHERE d.site_id = ANY (scope)
                  AND d.day_id = o.day_id
                ORDER BY number DESC
                LIMIT depth
            ) AS l
            WHERE l.number > 0
              AND NOT EXISTS (SELECT FROM tops AS t WHERE t.app_id = app AND t.site_id = site AND t.day_id = o.day_id AND t.by = measure)
        ), edges AS MATERIALIZED (
            SELECT l.day_id, CASE WHEN count(*) < depth THEN 0 ELSE min(l.number) END AS edge
            FROM listed AS l
            GROUP BY l.day_id
        ), ceiling AS MATERIALIZED (
            SELECT coalesce(sum(e.edge), 0) AS ceiling
            FROM edges AS e
        ), known AS MATERIALIZED (
            SELECT l.page_id, sum(l.number) AS least, sum(e.edge) AS covered
            FROM listed AS l
            JOIN edges AS e ON e.day_id = l.day_id
            GROUP BY l.page_id
        ), candidates AS MATERIALIZED (
            SELECT k.page_id
            FROM known AS k
            CROSS JOIN ceiling AS c
            WHERE k.least + c.ceiling - k.covered >= coalesce((SELECT b.least FROM known AS b ORDER BY b.least DESC OFFSET n - 1 LIMIT 1), 0)
        ), first AS MATERIALIZED (
            SELECT c.page_id, d.number
            FROM candidates AS c
            CROSS JOIN LATERAL (
                SELECT sum(CASE measure WHEN 'pv' THEN d.pv WHEN 'uv' THEN d.uv ELSE d.hot END) AS number
                FROM days AS d
                WHERE d.page_id = c.page_id
                  AND d.day_id BETWEEN from_day AND to_day
            ) AS d
            WHERE d.number > 0
            ORDER BY d.number DESC, c.page_id
            LIMIT n
        )
        SELECT array_agg(f.page_id ORDER BY f.number DESC, f.page_id),
               array_agg(f.number ORDER BY f.number DESC, f.page_id),
               (SELECT c.ceiling FROM ceiling AS c) < CASE WHEN count(*) < n THEN 1 ELSE min(f.number) END
        INTO pages, numbers, proved
        FROM first AS f;

        EXIT WHEN proved OR depth = 1000;
        depth := least(10 * depth, 1000);
    END LOOP;
    IF proved THEN
        RETURN QUERY SELECT * FROM unnest(pages, numbers);
    ELSE
        RETURN QUERY
        SELECT d.page_id, sum(CASE measure WHEN 'pv' THEN d.pv WHEN 'uv' THEN d.uv ELSE d.hot END) AS number
        FROM days AS d
        WHERE d.site_id = ANY (scope)
          AND d.day_id BETWEEN from_day AND to_day
        GROUP BY d.page_id
        HAVING sum(CASE measure WHEN 'pv' THEN d.pv WHEN 'uv' THEN d.uv ELSE d.hot END) > 0
        ORDER BY number DESC, d.page_id
        LIMIT n;
    END IF;
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION first_pages(integer, bigint, integer, integer, text, integer) IS 'The first n pages of an app, or of one of its sites (0: all), in a range of days, by pv, uv or hot; exact.';

-- How many visitors came to any of some targets in a range of days. From their rows, where all are kept; else from the sketches of the days
-- that are closed and the rows of the others.
-- +goose StatementBegin
CREATE FUNCTION group_uniques(app integer, pages bigint[], from_day integer, to_day integer)
RETURNS TABLE (uniques bigint, exact boolean, standard_error double precision, erased bigint)
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    open_days integer[];
BEGIN
    -- Erased visitors cannot be told apart; each of their days may be one more visitor.
    SELECT coalesce(sum(e.visitors), 0)
    INTO erased
    FROM erased_visits AS e
    WHERE e.page_id = ANY (pages)
      AND e.day_id BETWEEN from_day AND to_day;

    IF from_day >= coalesce((SELECT k.from_day FROM visits_kept AS k WHERE k.app_id = app), 0) THEN
        SELECT count(DISTINCT v.ip)
        INTO uniques
        FROM visits AS v
        WHERE v.page_id = ANY (pages)
          AND v.day_id BETWEEN from_day AND to_day;
        exact := erased = 0;
        standard_error := 0;
    ELSE
        open_days := ARRAY(
            SELECT DISTINCT d.day_id
            FROM pages AS s
            JOIN days AS d ON d.page_id = s.id AND d.day_id BETWEEN from_day AND to_day
            WHERE s.app_id = app
              AND s.site_id IS NULL
              AND NOT EXISTS (SELECT FROM closed_days AS c WHERE c.day_id = d.day_id)
            ORDER BY d.day_id
        );
        WITH open AS MATERIALIZED (
            SELECT sha256(inet_send(v.ip)) AS hash
            FROM visits AS v
            WHERE v.page_id = ANY (pages)
              AND v.day_id = ANY (open_days)
              AND v.day_id >= open_days[1] -- so that the days before need not be opened
        ), entries AS (
            SELECT unnest(s.entries) AS entry
            FROM sketches AS s
            WHERE s.page_id = ANY (pages)
              AND s.day_id BETWEEN from_day AND to_day
            UNION ALL
            SELECT sketch_entry(o.hash)
            FROM open AS o
        ), highest AS (
            SELECT max(e.entry) % 64 AS value
            FROM entries AS e
            GROUP BY e.entry / 64
        )
        SELECT round(sketch_estimate(count(*), coalesce(sum(power(2::double precision, -h.value)), 0)))
        INTO uniques
        FROM highest AS h;
        exact := false;
        standard_error := 0.01625;
    END IF;
    RETURN NEXT;
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION group_uniques(integer, bigint[], integer, integer) IS 'How many visitors came to any of some targets in a range of days, and how sure that is.';

-- Exactly, whatever rows are gone: see returns. In sums of deleted pages, and where visitors were believed (serve --filter approx), it is not
-- known of some visitors when they came before: then as for a group.
-- +goose StatementBegin
CREATE FUNCTION target_uniques(app integer, page bigint, from_day integer, to_day integer)
RETURNS TABLE (uniques bigint, exact boolean, standard_error double precision, erased bigint)
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    unknown bigint;
BEGIN
    SELECT coalesce(sum(d.uv), 0), coalesce(sum(d.pv - d.uv), 0)
    INTO uniques, unknown
    FROM days AS d
    WHERE d.page_id = page
      AND d.day_id BETWEEN from_day AND to_day;
    SELECT uniques + coalesce(sum(r.visitors) FILTER (WHERE r.previous_day < from_day), 0), unknown - coalesce(sum(r.visitors), 0)
    INTO uniques, unknown
    FROM returns AS r
    WHERE r.page_id = page
      AND r.day_id BETWEEN from_day AND to_day;
    IF unknown > 0 THEN
        RETURN QUERY SELECT * FROM group_uniques(app, ARRAY[page], from_day, to_day);
        RETURN;
    END IF;
    exact := true;
    standard_error := 0;
    erased := 0;
    RETURN NEXT;
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION target_uniques(integer, bigint, integer, integer) IS 'How many visitors came to a target in a range of days, and how sure that is: exact but for sums of deleted pages.';

-- +goose StatementBegin
CREATE FUNCTION day_date(day integer) RETURNS date
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT make_date(day / 10000, day / 100 % 100, day % 100)
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION day_date(integer) IS 'A day like 20190629 as a date.';

-- +goose StatementBegin
CREATE FUNCTION today(tz text) RETURNS integer
LANGUAGE sql STABLE STRICT
AS $$
    SELECT to_char(now() AT TIME ZONE tz, 'YYYYMMDD')::integer
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION today(text) IS 'The day that it is in a time zone, like 20190629.';

CREATE VIEW report.sites AS
SELECT a.name AS app, p.uri AS site, c.pv, c.uv, c.hot, p.created_at AS since
FROM pages AS p
JOIN apps AS a     ON a.id = p.app_id
JOIN counters AS c ON c.page_id = p.id
WHERE p.site_id IS NULL;

COMMENT ON VIEW   report.sites       IS 'Sites and what was counted for them in all.';
COMMENT ON COLUMN report.sites.app   IS 'The app that counts it.';
COMMENT ON COLUMN report.sites.site  IS 'host, or host:port.';
COMMENT ON COLUMN report.sites.pv    IS '(visitor, day) pairs.';
COMMENT ON COLUMN report.sites.uv    IS 'Visitors.';
COMMENT ON COLUMN report.sites.hot   IS 'Visits.';
COMMENT ON COLUMN report.sites.since IS 'When it was counted first.';

CREATE VIEW report.pages AS
SELECT a.name AS app, s.uri AS site, p.uri, c.pv, c.uv, c.hot, p.created_at AS since
FROM pages AS p
JOIN pages AS s    ON s.id = p.site_id
JOIN apps AS a     ON a.id = p.app_id
JOIN counters AS c ON c.page_id = p.id;

COMMENT ON VIEW   report.pages       IS 'Pages and what was counted for them in all.';
COMMENT ON COLUMN report.pages.app   IS 'The app that counts it.';
COMMENT ON COLUMN report.pages.site  IS 'Its site.';
COMMENT ON COLUMN report.pages.uri   IS 'The page, without a scheme: example.com/home.';
COMMENT ON COLUMN report.pages.pv    IS '(visitor, day) pairs.';
COMMENT ON COLUMN report.pages.uv    IS 'Visitors.';
COMMENT ON COLUMN report.pages.hot   IS 'Visits.';
COMMENT ON COLUMN report.pages.since IS 'When it was counted first.';

CREATE VIEW report.days AS
SELECT a.name AS app, p.uri AS target, d.day_id, day_date(d.day_id) AS day, d.pv, d.uv AS new_visitors, d.hot
FROM days AS d
JOIN pages AS p ON p.id = d.page_id
JOIN apps AS a  ON a.id = p.app_id
WHERE d.day_id > 0;

COMMENT ON VIEW   report.days              IS 'What was counted for each target on each day, for ever. What no day can be told of is left out.';
COMMENT ON COLUMN report.days.app          IS 'The app that counts it.';
COMMENT ON COLUMN report.days.target       IS 'The page, or the site.';
COMMENT ON COLUMN report.days.day_id       IS 'The day as a number, like 20190629.';
COMMENT ON COLUMN report.days.day          IS 'The day as a date.';
COMMENT ON COLUMN report.days.pv           IS 'Visitors of the day.';
COMMENT ON COLUMN report.days.new_visitors IS 'Those of them who came for the first time ever.';
COMMENT ON COLUMN report.days.hot          IS 'Visits.';

CREATE VIEW report.visits AS
SELECT a.name AS app, p.uri, v.ip AS visitor, v.day_id, day_date(v.day_id) AS day
FROM visits AS v
JOIN pages AS p ON p.id = v.page_id AND p.site_id IS NOT NULL
JOIN apps AS a  ON a.id = p.app_id;

COMMENT ON VIEW   report.visits         IS 'Who came to which page on which day, as long as that is kept.';
COMMENT ON COLUMN report.visits.app     IS 'The app that counts it.';
COMMENT ON COLUMN report.visits.uri     IS 'The page.';
COMMENT ON COLUMN report.visits.visitor IS 'The visitor''s address, for IPv6 the first of its network; in fd00::/8 a hash.';
COMMENT ON COLUMN report.visits.day_id  IS 'The day as a number, like 20190629.';
COMMENT ON COLUMN report.visits.day     IS 'The day as a date.';

CREATE VIEW report.visitors_today AS
SELECT a.name AS app, p.uri AS target, v.ip AS visitor, w.rank, w.first_day = v.day_id AS is_new
FROM apps AS a
JOIN pages AS p ON p.app_id = a.id
CROSS JOIN LATERAL (
    SELECT o.page_id, o.day_id, o.ip
    FROM visits AS o
    WHERE o.page_id = p.id
      AND o.day_id = today(a.tz)
    OFFSET 0 -- so that the day is known before a partition is opened
) AS v
LEFT JOIN visitors AS w ON w.page_id = v.page_id AND w.ip = v.ip;

COMMENT ON VIEW   report.visitors_today         IS 'Who has come to each target today, in the time zone of its app.';
COMMENT ON COLUMN report.visitors_today.app     IS 'The app that counts it.';
COMMENT ON COLUMN report.visitors_today.target  IS 'The page, or the site.';
COMMENT ON COLUMN report.visitors_today.visitor IS 'The visitor''s address, for IPv6 the first of its network; in fd00::/8 a hash.';
COMMENT ON COLUMN report.visitors_today.rank    IS 'The visitor''s rank at the target.';
COMMENT ON COLUMN report.visitors_today.is_new  IS 'It is the visitor''s first day there.';

CREATE VIEW report.ranks AS
SELECT a.name AS app, p.uri AS target, r.rank, r.visitor, r.first_day, r.last_day
FROM apps AS a
JOIN pages AS p ON p.app_id = a.id
JOIN (
    SELECT page_id, rank, ip AS visitor, first_day, last_day
    FROM visitors
    UNION ALL
    SELECT page_id, rank, NULL, NULL, NULL
    FROM erased_visitors
) AS r ON r.page_id = p.id;

COMMENT ON VIEW   report.ranks           IS 'Who was visitor number N of each target.';
COMMENT ON COLUMN report.ranks.app       IS 'The app that counts it.';
COMMENT ON COLUMN report.ranks.target    IS 'The page, or the site.';
COMMENT ON COLUMN report.ranks.rank      IS 'The number: 1, 2, 3 …';
COMMENT ON COLUMN report.ranks.visitor   IS 'The visitor''s address, for IPv6 the first of its network; in fd00::/8 a hash. Null: erased.';
COMMENT ON COLUMN report.ranks.first_day IS 'The day of the first visit, like 20190629.';
COMMENT ON COLUMN report.ranks.last_day  IS 'The last day on which the visitor came.';

-- +goose StatementBegin
CREATE FUNCTION report.top_pages(app text, from_day integer, to_day integer, n integer DEFAULT 10, by text DEFAULT 'pv', site text DEFAULT NULL)
RETURNS TABLE (uri text, pv bigint, new_visitors bigint, hot bigint, uniques bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    IF top_pages.by NOT IN ('pv', 'uv', 'hot') THEN
        RAISE EXCEPTION 'by: % is no number of a page: use pv, uv or hot', top_pages.by USING ERRCODE = '22023';
    END IF;
    IF n NOT BETWEEN 1 AND 10000 THEN
        RAISE EXCEPTION 'n: % is not between 1 and 10000', n USING ERRCODE = '22023';
    END IF;
    RETURN QUERY
    SELECT p.uri, d.pv, d.uv, d.hot,
           CASE
               WHEN d.pv - d.uv = r.visitors THEN d.uv + r.from_before
               ELSE (SELECT u.uniques FROM target_uniques(a.id, p.id, from_day, to_day) AS u)
           END
    FROM apps AS a
    CROSS JOIN LATERAL first_pages(a.id, CASE WHEN top_pages.site IS NULL THEN 0 ELSE coalesce(
                                             (SELECT s.id FROM pages AS s WHERE s.app_id = a.id AND s.key = page_key(top_pages.site) AND s.site_id IS NULL), -1) END,
                                   from_day, to_day, top_pages.by, n) WITH ORDINALITY AS f (page_id, number, place)
    JOIN pages AS p ON p.id = f.page_id
    CROSS JOIN LATERAL (
        SELECT sum(o.pv)::bigint AS pv, sum(o.uv)::bigint AS uv, sum(o.hot)::bigint AS hot
        FROM days AS o
        WHERE o.page_id = f.page_id
          AND o.day_id BETWEEN from_day AND to_day
    ) AS d
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(o.visitors), 0)::bigint AS visitors,
               coalesce(sum(o.visitors) FILTER (WHERE o.previous_day < from_day), 0)::bigint AS from_before
        FROM returns AS o
        WHERE o.page_id = f.page_id
          AND o.day_id BETWEEN from_day AND to_day
    ) AS r
    WHERE a.name = top_pages.app
    ORDER BY f.place;
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION report.top_pages(text, integer, integer, integer, text, text) IS 'The first n pages of an app (or of one site) in a range of days, by pv, uv (new visitors) or hot: SELECT * FROM report.top_pages(''demo'', 20190601, 20190630, 20).';

-- +goose StatementBegin
CREATE FUNCTION report.uniques(app text, target text, from_day integer, to_day integer)
RETURNS TABLE (uniques bigint, exact boolean, standard_error double precision, erased bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    SELECT u.uniques, u.exact, u.standard_error, u.erased
    FROM apps AS a
    JOIN pages AS p ON p.app_id = a.id AND p.key = page_key(uniques.target)
    CROSS JOIN LATERAL target_uniques(a.id, p.id, from_day, to_day) AS u
    WHERE a.name = uniques.app
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION report.uniques(text, text, integer, integer) IS 'How many visitors came to a page or site in a range of days, each counted once: SELECT * FROM report.uniques(''demo'', ''example.com'', 20190601, 20190630).';

-- +goose StatementBegin
CREATE FUNCTION report.uniques(app text, targets text[], from_day integer, to_day integer)
RETURNS TABLE (uniques bigint, exact boolean, standard_error double precision, erased bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    SELECT u.uniques, u.exact, u.standard_error, u.erased
    FROM apps AS a
    CROSS JOIN LATERAL group_uniques(a.id,
                                     ARRAY(SELECT p.id FROM pages AS p
                                           WHERE p.app_id = a.id AND p.key IN (SELECT page_key(unnest(uniques.targets)))),
                                     from_day, to_day) AS u
    WHERE a.name = uniques.app
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION report.uniques(text, text[], integer, integer) IS 'How many visitors came to any of several pages or sites in a range of days. Exact while their visits are kept, else with a standard error; erased: days of erased visitors, who cannot be told apart.';

-- +goose StatementBegin
CREATE FUNCTION report.uniques_under(app text, prefix text, from_day integer, to_day integer)
RETURNS TABLE (uniques bigint, exact boolean, standard_error double precision, erased bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    SELECT u.uniques, u.exact, u.standard_error, u.erased
    FROM apps AS a
    CROSS JOIN LATERAL group_uniques(a.id,
                                     ARRAY(SELECT p.id FROM pages AS p
                                           WHERE p.app_id = a.id AND p.site_id IS NOT NULL
                                             AND p.uri ~>=~ prefix AND p.uri ~<~ (prefix || U&'\+10FFFF')),
                                     from_day, to_day) AS u
    WHERE a.name = uniques_under.app
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION report.uniques_under(text, text, integer, integer) IS 'How many visitors came to any page whose uri begins so: SELECT * FROM report.uniques_under(''demo'', ''example.com/blog/'', 20190601, 20190630). As for several targets.';

REVOKE ALL ON FUNCTION close_day(integer), make_tops(integer), report.top_pages(text, integer, integer, integer, text, text),
    report.uniques(text, text, integer, integer), report.uniques(text, text[], integer, integer), report.uniques_under(text, text, integer, integer) FROM PUBLIC;

-- +goose Down
DROP FUNCTION report.uniques_under(text, text, integer, integer);
DROP FUNCTION report.uniques(text, text[], integer, integer);
DROP FUNCTION report.uniques(text, text, integer, integer);
DROP FUNCTION report.top_pages(text, integer, integer, integer, text, text);
DROP VIEW report.ranks;
DROP VIEW report.visitors_today;
DROP VIEW report.visits;
DROP VIEW report.days;
DROP VIEW report.pages;
DROP VIEW report.sites;
DROP FUNCTION today(text);
DROP FUNCTION day_date(integer);
DROP FUNCTION target_uniques(integer, bigint, integer, integer);
DROP FUNCTION group_uniques(integer, bigint[], integer, integer);
DROP FUNCTION first_pages(integer, bigint, integer, integer, text, integer);
DROP FUNCTION make_tops(integer);
DROP FUNCTION close_day(integer);
DROP FUNCTION sketch_estimate(bigint, double precision);
DROP FUNCTION sketch_entry(bytea);
DROP TABLE tops;
DROP TABLE sketches;
DROP TABLE closed_days;
DROP TABLE visits_kept;
DROP INDEX pages_by_uri;
