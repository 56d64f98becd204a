-- Late visits: visits that may be earlier than other visits of their visitors. Each late visit is linked between the visitor's
-- visit before it and the one after it, as if it had arrived in time. The caller has locked the counters of the targets, and
-- keeps their days unchanged (require_past_days).

-- For each visitor, finds the first day of a visit on or after a given day, and the day of the visit before that one. Starts
-- at the last day of each visitor and follows their previous days backwards. All visitors of a day are followed together, the
-- latest day first. So each partition is opened once, and only if it has a row. Each day is a separate statement, because one
-- statement for all days would lock all partitions.
CREATE FUNCTION days_after(
    places integer[], pages bigint[], ips inet[], asked_days integer[], last_days integer[],
    OUT found_places integer[], OUT next_days integer[], OUT previous_days integer[]
)
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
DECLARE
    day            integer;
    walked         record;
    have_read_anew boolean := false;
BEGIN
    found_places := '{}';
    next_days := '{}';
    previous_days := '{}';
    LOOP
        SELECT max(l.day_id) INTO day FROM unnest(last_days) AS l (day_id);
        EXIT WHEN day IS NULL;
        EXECUTE format($walk$
            WITH walked AS MATERIALIZED (
                SELECT w.place, w.page_id, w.ip, w.asked_day, w.day_id,
                       CASE WHEN w.day_id = %1$s THEN coalesce(v.previous_day, -1) END AS previous_day
                FROM (SELECT unnest($1) AS place, unnest($2) AS page_id, unnest($3) AS ip, unnest($4) AS asked_day, unnest($5) AS day_id) AS w
                LEFT JOIN LATERAL (
                    SELECT r.previous_day
                    FROM visits AS r
                    WHERE w.day_id = %1$s
                      AND r.day_id = %1$s
                      AND r.page_id = w.page_id
                      AND r.ip BETWEEN w.ip AND w.ip
                    ORDER BY r.page_id, r.ip
                    LIMIT 1
                ) AS v ON true
            ), here AS (
                SELECT array_agg(w.place) AS places, array_agg(w.previous_day) AS previous_days
                FROM walked AS w
                WHERE w.previous_day < w.asked_day
            ), further AS (
                SELECT array_agg(w.place) AS places, array_agg(w.page_id) AS pages, array_agg(w.ip) AS ips, array_agg(w.asked_day) AS asked_days,
                       array_agg(coalesce(w.previous_day, w.day_id)) AS last_days
                FROM walked AS w
                WHERE w.previous_day IS NULL
                   OR w.previous_day >= w.asked_day
            )
            SELECT h.places AS here, h.previous_days, f.places, f.pages, f.ips, f.asked_days, f.last_days
            FROM here AS h
            CROSS JOIN further AS f $walk$, day)
        INTO walked
        USING places, pages, ips, asked_days, last_days;
        IF -1 = ANY (walked.previous_days) AND NOT have_read_anew THEN
            PERFORM read_partitions_anew(); -- this session may not have seen the partition yet
            have_read_anew := true;
            CONTINUE;
        ELSIF -1 = ANY (walked.previous_days) THEN
            RAISE EXCEPTION 'the visit of a visitor on day % is missing, although another row refers to it', day
                USING ERRCODE = '22000', HINT = 'Run footfall verify.';
        END IF;
        found_places := found_places || walked.here;
        next_days := next_days || array_fill(day, ARRAY[coalesce(cardinality(walked.here), 0)]);
        previous_days := previous_days || walked.previous_days;
        places := walked.places;
        pages := walked.pages;
        ips := walked.ips;
        asked_days := walked.asked_days;
        last_days := walked.last_days;
    END LOOP;
END
$$;

COMMENT ON FUNCTION days_after(integer[], bigint[], inet[], integer[], integer[]) IS 'For each visitor, the first day of a visit on or after a day, and the day of the visit before. The values at one index of the arrays are a row number, a target, a visitor, the day, and the visitor''s last day, which is not earlier. Fails if the row of a day is missing.';

-- Returns fewer visitors than requested if open_returns has fewer. Then the caller subtracts the rest from packed_returns.
CREATE FUNCTION take_open_returns(pages bigint[], days integer[], previous integer[], INOUT visitors bigint[])
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
SET enable_seqscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
BEGIN
    WITH found AS MATERIALIZED (
        SELECT a.page_id, a.day_id, a.previous_day, a.n, a.place, coalesce(o.visitors, 0) AS there
        FROM unnest(pages, days, previous, take_open_returns.visitors) WITH ORDINALITY AS a (page_id, day_id, previous_day, n, place)
        LEFT JOIN open_returns AS o ON o.page_id = a.page_id AND o.day_id = a.day_id AND o.previous_day = a.previous_day
    ), gone AS (
        DELETE FROM open_returns AS o
        USING found AS f
        WHERE o.page_id = f.page_id
          AND o.day_id = f.day_id
          AND o.previous_day = f.previous_day
          AND f.there <= f.n
    ), lowered AS (
        INSERT INTO open_returns AS o (page_id, day_id, previous_day, visitors)
        SELECT f.page_id, f.day_id, f.previous_day, f.n
        FROM found AS f
        WHERE f.there > f.n
          AND f.n > 0
        ON CONFLICT (page_id, day_id, previous_day) DO UPDATE
            SET visitors = o.visitors - excluded.visitors
    )
    SELECT array_agg(least(f.there, f.n) ORDER BY f.place)
    INTO take_open_returns.visitors
    FROM found AS f;
END
$$;

COMMENT ON FUNCTION take_open_returns(bigint[], integer[], integer[], bigint[]) IS 'Subtracts visitors from rows of open_returns, and returns how many it has subtracted. The values at one index of the arrays are a target, a day, a previous day and a number of visitors.';

-- Returns of closed days are in packed_returns, except those that the daily task has not packed yet.
CREATE FUNCTION relink_returns(pages bigint[], days integer[], previous integer[], added bigint[]) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
DECLARE
    closed integer[] := ARRAY(SELECT c.day_id FROM closed_days AS c WHERE c.day_id = ANY (days));
    n      bigint[];
BEGIN
    INSERT INTO open_returns AS o (page_id, day_id, previous_day, visitors)
    SELECT a.page_id, a.day_id, a.previous_day, a.n
    FROM unnest(pages, days, previous, added) AS a (page_id, day_id, previous_day, n)
    WHERE a.n > 0
      AND a.day_id <> ALL (closed)
    ORDER BY a.page_id, a.day_id, a.previous_day
    ON CONFLICT (page_id, day_id, previous_day) DO UPDATE
        SET visitors = o.visitors + excluded.visitors;

    SELECT array_agg(a.page_id), array_agg(a.day_id), array_agg(a.previous_day), array_agg(a.n)
    INTO pages, days, previous, added
    FROM unnest(pages, days, previous, added) AS a (page_id, day_id, previous_day, n)
    WHERE a.n < 0
       OR a.day_id = ANY (closed);
    n := take_open_returns(pages, days, previous, ARRAY(SELECT greatest(-a.n, 0) FROM unnest(added) WITH ORDINALITY AS a (n, place) ORDER BY a.place));

    SELECT array_agg(a.page_id), array_agg(a.day_id), array_agg(a.previous_day), array_agg(a.n + a.taken)
    INTO pages, days, previous, added
    FROM unnest(pages, days, previous, added, n) AS a (page_id, day_id, previous_day, n, taken)
    WHERE a.n + a.taken <> 0;
    IF pages IS NOT NULL THEN
        PERFORM add_packed_returns(pages, days, previous, added);
    END IF;
END
$$;

COMMENT ON FUNCTION relink_returns(bigint[], integer[], integer[], bigint[]) IS 'Adds visitors to returns of any days, or removes them if added is negative. The values at one index of the arrays are a target, a day, a previous day and a number of visitors, without duplicates. Fails if a number would become negative.';

-- The lists that this function deletes are made again by the daily task, from the daily numbers. Batches of two sites of an
-- app have no lock in common, but both delete lists of the app. To avoid deadlocks, all batches lock the rows in order of key.
CREATE FUNCTION drop_tops(targets bigint[], days integer[]) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
SET enable_seqscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
BEGIN
    DELETE FROM tops AS t
    WHERE t.ctid = ANY (ARRAY(
        SELECT o.ctid
        FROM (
            SELECT DISTINCT p.app_id, l.site_id, d.day_id
            FROM unnest(targets, days) AS d (page_id, day_id)
            JOIN pages AS p ON p.id = d.page_id
            CROSS JOIN LATERAL (VALUES (0), (coalesce(p.site_id, p.id))) AS l (site_id)
        ) AS c
        JOIN tops AS o ON o.app_id = c.app_id AND o.site_id = c.site_id AND o.day_id = c.day_id
        ORDER BY o.app_id, o.site_id, o.day_id, o.by
        FOR UPDATE OF o
    ));
END
$$;

COMMENT ON FUNCTION drop_tops(bigint[], integer[]) IS 'Deletes the lists of top pages of the sites of some targets, and of their whole apps, on the given days.';

-- The row of each visitor at a target, in the order of the arrays. The results are null if the visitor has never visited the
-- target. In all functions below, the values at one index of all arrays belong together.
CREATE FUNCTION find_late_visitors(pages bigint[], ips inet[], OUT ranks bigint[], OUT firsts integer[], OUT lasts integer[])
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    SELECT array_agg(v.rank ORDER BY a.place), array_agg(v.first_day ORDER BY a.place), array_agg(v.last_day ORDER BY a.place)
    INTO ranks, firsts, lasts
    FROM (SELECT unnest(pages) AS page_id, unnest(ips) AS ip, generate_subscripts(pages, 1) AS place) AS a
    LEFT JOIN LATERAL (
        SELECT w.rank, w.first_day, w.last_day
        FROM visitors AS w
        WHERE w.page_id = a.page_id
          AND w.ip BETWEEN a.ip AND a.ip
        ORDER BY w.page_id, w.ip
        LIMIT 1
    ) AS v ON true;
END
$$;

COMMENT ON FUNCTION find_late_visitors(bigint[], inet[]) IS 'Rank, first day and last day of each visitor at a target.';

CREATE FUNCTION decide_late_visits(
    pages bigint[], ips inet[], at_days integer[], lasts integer[],
    INOUT ranks bigint[], OUT next_days integer[], OUT previous_days integer[], OUT newcomers boolean[], OUT counts boolean[]
)
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
DECLARE
    late record; -- visits on or before the last day of their visitor
BEGIN
    SELECT n.found_places AS places, n.next_days, n.previous_days
    INTO late
    FROM (
        SELECT array_agg(f.place) AS places, array_agg(f.page_id) AS pages, array_agg(f.ip) AS ips, array_agg(f.day_id) AS days, array_agg(f.last_day) AS last_days
        FROM (
            SELECT generate_subscripts(pages, 1) AS place, unnest(pages) AS page_id, unnest(ips) AS ip, unnest(at_days) AS day_id, unnest(lasts) AS last_day
        ) AS f
        WHERE f.last_day >= f.day_id
    ) AS w
    CROSS JOIN LATERAL days_after(w.places, w.pages, w.ips, w.days, w.last_days) AS n;

    SELECT array_agg(d.rank ORDER BY d.place), array_agg(d.next_day ORDER BY d.place), array_agg(d.previous_day ORDER BY d.place),
           array_agg(d.newcomer ORDER BY d.place), array_agg(d.next_day IS DISTINCT FROM d.day_id ORDER BY d.place)
    INTO ranks, next_days, previous_days, newcomers, counts
    FROM (
        SELECT f.place, f.day_id, l.next_day, coalesce(l.previous_day, f.last_day, 0) AS previous_day, f.rank IS NULL AS newcomer,
               coalesce(f.rank, (SELECT c.uv FROM counters AS c WHERE c.page_id = f.page_id)
                                + row_number() OVER (PARTITION BY f.page_id, f.rank IS NULL ORDER BY f.place)) AS rank
        FROM (
            SELECT generate_subscripts(pages, 1) AS place, unnest(pages) AS page_id, unnest(at_days) AS day_id, unnest(ranks) AS rank, unnest(lasts) AS last_day
        ) AS f
        LEFT JOIN (
            SELECT unnest(late.places) AS place, unnest(late.next_days) AS next_day, unnest(late.previous_days) AS previous_day
        ) AS l ON l.place = f.place
    ) AS d;
END
$$;

COMMENT ON FUNCTION decide_late_visits(bigint[], inet[], integer[], integer[], bigint[]) IS 'Classifies visits of visitors with the given ranks and last days. Returns the rank, the day of the visitor''s visit on or after the day (null: none), the day of the visit before (0: none), whether the visit is the first ever, and whether it is the first of its day.';

CREATE FUNCTION write_late_visits(
    pages bigint[], ips inet[], at_days integer[], firsts integer[], lasts integer[],
    ranks bigint[], next_days integer[], previous_days integer[], newcomers boolean[], counts boolean[], tag_sets text[]
) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    WITH decided AS MATERIALIZED (
        SELECT unnest(pages) AS page_id, unnest(ips) AS ip, unnest(at_days) AS day_id, unnest(firsts) AS first_day, unnest(lasts) AS last_day,
               unnest(ranks) AS rank, unnest(next_days) AS next_day, unnest(previous_days) AS previous_day, unnest(newcomers) AS newcomer,
               unnest(counts) AS counted, unnest(tag_sets) AS tags
    ), came AS (
        INSERT INTO visitors (page_id, ip, rank, first_day, last_day)
        SELECT d.page_id, d.ip, d.rank, d.day_id, d.day_id
        FROM decided AS d
        WHERE d.newcomer
        ORDER BY d.page_id, d.ip
    ), returned AS (
        INSERT INTO visitors AS v (page_id, ip, rank, first_day, last_day)
        SELECT d.page_id, d.ip, d.rank, least(d.first_day, d.day_id), greatest(d.last_day, d.day_id)
        FROM decided AS d
        WHERE d.day_id < d.first_day
           OR d.day_id > d.last_day
        ORDER BY d.page_id, d.ip
        ON CONFLICT (page_id, ip) DO UPDATE
            SET first_day = excluded.first_day,
                last_day  = excluded.last_day
    ), visited AS (
        INSERT INTO visits (page_id, day_id, previous_day, ip, tags)
        SELECT d.page_id, d.day_id, d.previous_day, d.ip, nullif(d.tags, '')::integer[]
        FROM decided AS d
        WHERE d.counted
        ORDER BY d.day_id, d.page_id, d.ip
    )
    INSERT INTO visits AS v (page_id, day_id, previous_day, ip)
    SELECT d.page_id, d.next_day, d.day_id, d.ip
    FROM decided AS d
    WHERE d.next_day > d.day_id
    ORDER BY d.next_day, d.page_id, d.ip
    ON CONFLICT (page_id, day_id, ip) DO UPDATE
        SET previous_day = excluded.previous_day;
END
$$;

COMMENT ON FUNCTION write_late_visits(bigint[], inet[], integer[], integer[], integer[], bigint[], integer[], integer[], boolean[], boolean[], text[]) IS 'Writes visits as classified by decide_late_visits(), and the rows of their visitors. The next visit of each visitor gets the new visit as its previous one.';

CREATE FUNCTION add_late_hot(targets bigint[], sites bigint[], target_days integer[], hots bigint[]) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    INSERT INTO days AS d (page_id, site_id, day_id, hot, pv, new_visitors)
    SELECT t.page_id, nullif(t.site_id, 0), t.day_id, t.hot, 0, 0
    FROM unnest(targets, sites, target_days, hots) AS t (page_id, site_id, day_id, hot)
    ORDER BY t.page_id, t.day_id
    ON CONFLICT (page_id, day_id) DO UPDATE
        SET hot = d.hot + excluded.hot;
END
$$;

COMMENT ON FUNCTION add_late_hot(bigint[], bigint[], integer[], bigint[]) IS 'Adds visits to hot in the table days. The values at one index of the arrays are a target, its site (0: the target is a site), a day and a number.';

-- A row to insert must pass the checks of its table (hot >= pv) before PostgreSQL finds the conflict. So its hot equals its
-- pv, although hot is not added.
CREATE FUNCTION add_late_visits(pages bigint[], at_days integer[], previous_days integer[], newcomers boolean[], counts boolean[]) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    INSERT INTO days AS d (page_id, day_id, hot, pv, new_visitors)
    SELECT n.page_id, n.day_id, count(*), count(*), count(*) FILTER (WHERE n.previous_day = 0)
    FROM (SELECT unnest(pages) AS page_id, unnest(at_days) AS day_id, unnest(previous_days) AS previous_day, unnest(counts) AS counted) AS n
    WHERE n.counted
    GROUP BY n.page_id, n.day_id
    ORDER BY n.page_id, n.day_id
    ON CONFLICT (page_id, day_id) DO UPDATE
        SET pv           = d.pv + excluded.pv,
            new_visitors = d.new_visitors + excluded.new_visitors;

    INSERT INTO counters AS c (page_id, hot, pv, uv)
    SELECT n.page_id, count(*), count(*), sum(n.newcomer::integer)
    FROM (SELECT unnest(pages) AS page_id, unnest(newcomers) AS newcomer, unnest(counts) AS counted) AS n
    WHERE n.counted
    GROUP BY n.page_id
    ON CONFLICT (page_id) DO UPDATE
        SET pv = c.pv + excluded.pv,
            uv = c.uv + excluded.uv;
END
$$;

COMMENT ON FUNCTION add_late_visits(bigint[], integer[], integer[], boolean[], boolean[]) IS 'Adds the visits with counts = true to pv and uv of their targets, and to the numbers of their days.';

CREATE FUNCTION link_late_returns(pages bigint[], at_days integer[], next_days integer[], previous_days integer[], counts boolean[]) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
DECLARE
    changes record;
BEGIN
    SELECT array_agg(c.page_id) AS pages, array_agg(c.day_id) AS days, array_agg(c.previous_day) AS previous, array_agg(c.n) AS added
    INTO changes
    FROM (
        SELECT d.page_id, l.day_id, l.previous_day, sum(l.n)::bigint AS n
        FROM (
            SELECT unnest(pages) AS page_id, unnest(at_days) AS day_id, unnest(next_days) AS next_day, unnest(previous_days) AS previous_day,
                   unnest(counts) AS counted
        ) AS d
        CROSS JOIN LATERAL (VALUES (d.day_id, d.previous_day, 1), (d.next_day, d.day_id, 1), (d.next_day, d.previous_day, -1)) AS l (day_id, previous_day, n)
        WHERE d.counted
          AND l.day_id > 0
          AND l.previous_day > 0
        GROUP BY d.page_id, l.day_id, l.previous_day
    ) AS c
    WHERE c.n <> 0;
    IF changes.pages IS NOT NULL THEN
        PERFORM relink_returns(changes.pages, changes.days, changes.previous, changes.added);
    END IF;
END
$$;

COMMENT ON FUNCTION link_late_returns(bigint[], integer[], integer[], integer[], boolean[]) IS 'Changes the returns of targets for visits with counts = true: the return on the day of the visit, and the return on the visitor''s next day.';

-- A row to insert must pass the checks of days (hot >= pv >= new_visitors) before PostgreSQL finds the conflict. So hot and pv
-- are set, too.
CREATE FUNCTION move_late_newcomers(INOUT pages bigint[], at_days integer[], INOUT next_days integer[], previous_days integer[])
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    WITH moved AS (
        INSERT INTO days AS d (page_id, day_id, hot, pv, new_visitors)
        SELECT m.page_id, m.next_day, count(*), count(*), count(*)
        FROM (SELECT unnest(pages) AS page_id, unnest(at_days) AS day_id, unnest(next_days) AS next_day, unnest(previous_days) AS previous_day) AS m
        WHERE m.next_day > m.day_id
          AND m.previous_day = 0
        GROUP BY m.page_id, m.next_day
        ORDER BY m.page_id, m.next_day
        ON CONFLICT (page_id, day_id) DO UPDATE
            SET new_visitors = d.new_visitors - excluded.new_visitors
        RETURNING d.page_id, d.day_id
    )
    SELECT array_agg(m.page_id), array_agg(m.day_id)
    INTO pages, next_days
    FROM moved AS m;
END
$$;

COMMENT ON FUNCTION move_late_newcomers(bigint[], integer[], integer[], integer[]) IS 'Subtracts visitors from the new visitors of the day that was their first one, because an earlier visit has arrived. Returns the targets and days that changed.';

-- Classifies and writes each visit, as VisitsRecord does for visits of a site's last day. The arrays are the columns of two
-- tables. The first table has a row for each (target, visitor, day), in order of arrival, and its tags. The second table has a
-- row for each (target, day), with the site (0: the target is a site) and the number of visits. CountersLock has already added
-- the visits to hot of the counters. Returns for each row of the first table its place, and the visitor's rank. newcomer is
-- true for the visitor's first visit to the target, and counted for the first visit on its day.
--
-- The first rows of all (target, visitor) pairs (turn 1) are counted together, then the second rows, and so on. So each visit
-- is linked between two days that are already stored.
CREATE FUNCTION record_late_visits(
    pages bigint[], ips inet[], day_ids integer[], turns integer[],
    targets bigint[], sites bigint[], target_days integer[], hots bigint[],
    tags bytea, tag_sets text[] DEFAULT NULL -- an instance of 0.1.0 does not pass tag_sets
) RETURNS TABLE (place integer, rank bigint, newcomer boolean, counted boolean)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
SET enable_nestloop = off -- arrays are not joined row by row with each other; rows of tables are still looked up one by one
AS $$
#variable_conflict use_column
DECLARE
    closed   integer[] := ARRAY(SELECT c.day_id FROM closed_days AS c WHERE c.day_id = ANY (target_days));
    v        record; -- the visits of a turn
    known    record; -- the rows of their visitors in visitors
    decided  record;
    moved    record; -- days whose new visitors turned out to have visited before
    -- Results of all turns, for tag_news.
    tag_places integer[] := '{}';
    verdicts   integer[] := '{}';
    -- Targets and days whose lists of top pages may be wrong now.
    changed_pages bigint[]  := '{}';
    changed_days  integer[] := '{}';
BEGIN
    PERFORM add_late_hot(targets, sites, target_days, hots);
    FOR nth IN 1 .. (SELECT coalesce(max(t.turn), 0) FROM unnest(turns) AS t (turn)) LOOP
        SELECT array_agg(a.place) AS places, array_agg(a.page_id) AS pages, array_agg(a.ip) AS ips, array_agg(a.day_id) AS days, array_agg(a.tags) AS tag_sets
        INTO v
        FROM (
            SELECT unnest(pages) AS page_id, unnest(ips) AS ip, unnest(day_ids) AS day_id, unnest(turns) AS turn, unnest(tag_sets) AS tags,
                   generate_subscripts(turns, 1) AS place
        ) AS a
        WHERE a.turn = nth;
        SELECT * INTO known FROM find_late_visitors(v.pages, v.ips);
        SELECT * INTO decided FROM decide_late_visits(v.pages, v.ips, v.days, known.lasts, known.ranks);
        PERFORM write_late_visits(v.pages, v.ips, v.days, known.firsts, known.lasts,
                                  decided.ranks, decided.next_days, decided.previous_days, decided.newcomers, decided.counts, v.tag_sets);
        PERFORM add_late_visits(v.pages, v.days, decided.previous_days, decided.newcomers, decided.counts);
        PERFORM link_late_returns(v.pages, v.days, decided.next_days, decided.previous_days, decided.counts);
        PERFORM add_to_sketches(array_agg(s.page_id), array_agg(s.day_id), array_agg(s.ip))
        FROM unnest(v.pages, v.days, v.ips, decided.counts) AS s (page_id, day_id, ip, counted)
        WHERE s.counted
          AND s.day_id = ANY (closed)
        HAVING count(*) > 0;
        SELECT * INTO moved FROM move_late_newcomers(v.pages, v.days, decided.next_days, decided.previous_days);
        changed_pages := changed_pages || moved.pages;
        changed_days := changed_days || moved.next_days;
        tag_places := tag_places || v.places;
        verdicts := verdicts || ARRAY(SELECT d.counted::integer + d.newcomer::integer
                                      FROM unnest(decided.counts, decided.newcomers) WITH ORDINALITY AS d (counted, newcomer, nth) ORDER BY d.nth);
        RETURN QUERY SELECT unnest(v.places), unnest(decided.ranks), unnest(decided.newcomers), unnest(decided.counts);
    END LOOP;

    INSERT INTO tag_news (verdicts, tags)
    SELECT array_agg(d.verdict ORDER BY d.place), record_late_visits.tags
    FROM unnest(tag_places, verdicts) AS d (place, verdict)
    WHERE octet_length(record_late_visits.tags) > 0
    HAVING bool_or(d.verdict > 0);

    SELECT changed_pages || array_agg(t.page_id), changed_days || array_agg(t.day_id)
    INTO changed_pages, changed_days
    FROM unnest(targets, sites, target_days) AS t (page_id, site_id, day_id)
    WHERE t.site_id = 0
      AND t.day_id = ANY (closed);
    IF changed_pages <> '{}' THEN
        PERFORM drop_tops(changed_pages, changed_days);
    END IF;
END
$$;

COMMENT ON FUNCTION record_late_visits(bigint[], inet[], integer[], integer[], bigint[], bigint[], integer[], bigint[], bytea, text[]) IS 'Counts visits of any days that their app keeps, in any order, for targets whose counters the caller has locked.';

REVOKE ALL ON FUNCTION days_after(integer[], bigint[], inet[], integer[], integer[]), take_open_returns(bigint[], integer[], integer[], bigint[]),
    relink_returns(bigint[], integer[], integer[], bigint[]), drop_tops(bigint[], integer[]), find_late_visitors(bigint[], inet[]),
    decide_late_visits(bigint[], inet[], integer[], integer[], bigint[]),
    write_late_visits(bigint[], inet[], integer[], integer[], integer[], bigint[], integer[], integer[], boolean[], boolean[], text[]),
    add_late_hot(bigint[], bigint[], integer[], bigint[]), add_late_visits(bigint[], integer[], integer[], boolean[], boolean[]), link_late_returns(bigint[], integer[], integer[], integer[], boolean[]),
    move_late_newcomers(bigint[], integer[], integer[], integer[]),
    record_late_visits(bigint[], inet[], integer[], integer[], bigint[], bigint[], integer[], bigint[], bytea, text[]) FROM PUBLIC;
