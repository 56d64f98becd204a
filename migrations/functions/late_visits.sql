-- Visits that may be earlier than others of their visitors: each is linked in between the day before
-- it and the one after, as if it had come in time. The caller holds the counters of the targets, and
-- has their days kept as they are (told_days_must_be).

-- The days on which visitors came after one, each with the day before it. Who came last on a day is
-- followed from there back, all who have come to a day at once, the latest day first: so each
-- partition is opened once, and only where somebody came. A statement is planned for each day, since
-- one for all days would lock them all.
CREATE FUNCTION later_days(
    pairs integer[], pages bigint[], ips inet[], last_days integer[], first_days integer[],
    OUT day_pairs integer[], OUT days integer[], OUT previous_days integer[]
)
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
DECLARE
    day           integer;
    here_pairs    integer[];
    here_previous integer[];
BEGIN
    day_pairs := '{}';
    days := '{}';
    previous_days := '{}';
    LOOP
        SELECT max(l.day_id) INTO day FROM unnest(last_days) AS l (day_id);
        EXIT WHEN day IS NULL;
        EXECUTE format($walk$
            WITH walked AS MATERIALIZED (
                SELECT w.pair, w.page_id, w.ip, w.first_day, w.day_id = %1$s AS here, r.previous_day,
                       CASE WHEN w.day_id = %1$s THEN r.previous_day ELSE w.day_id END AS next_day
                FROM unnest($1, $2, $3, $4, $5) AS w (pair, page_id, ip, day_id, first_day)
                LEFT JOIN LATERAL (
                    SELECT v.previous_day
                    FROM visits AS v
                    WHERE w.day_id = %1$s
                      AND v.day_id = %1$s
                      AND v.page_id = w.page_id
                      AND v.ip BETWEEN w.ip AND w.ip
                    ORDER BY v.page_id, v.ip
                    LIMIT 1
                ) AS r ON true
            )
            SELECT array_agg(pair) FILTER (WHERE here), array_agg(previous_day) FILTER (WHERE here),
                   array_agg(pair)      FILTER (WHERE next_day >= first_day), array_agg(page_id)  FILTER (WHERE next_day >= first_day),
                   array_agg(ip)        FILTER (WHERE next_day >= first_day), array_agg(next_day) FILTER (WHERE next_day >= first_day),
                   array_agg(first_day) FILTER (WHERE next_day >= first_day)
            FROM walked $walk$, day)
        INTO here_pairs, here_previous, pairs, pages, ips, last_days, first_days
        USING pairs, pages, ips, last_days, first_days;
        IF array_position(here_previous, NULL) IS NOT NULL THEN
            RAISE EXCEPTION 'a visitor has no visit on day %, which is one of theirs', day
                USING ERRCODE = '22000', HINT = 'Run footfall verify.';
        END IF;
        day_pairs := day_pairs || here_pairs;
        days := days || array_fill(day, ARRAY[cardinality(here_pairs)]);
        previous_days := previous_days || here_previous;
    END LOOP;
END
$$;

COMMENT ON FUNCTION later_days(integer[], bigint[], inet[], integer[], integer[]) IS 'The days of visitors from a first day on, each with the day before it. The arrays are one table: a number for the pair, target, visitor, last day and first day. Fails where the row of a day is missing.';

-- What is taken below what is there is left out: the caller looks for it among the packed ones.
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

COMMENT ON FUNCTION take_open_returns(bigint[], integer[], integer[], bigint[]) IS 'Takes visitors out of open_returns, and returns how many of them were there. The arrays are one table: target, day, previous day and how many.';

-- Those of days that are closed are packed, but for what the nightly task has not come to yet.
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

COMMENT ON FUNCTION relink_returns(bigint[], integer[], integer[], bigint[]) IS 'Adds visitors to returns of any days, or takes them away where added is negative. The arrays are one table, in which no row is there twice: target, day, previous day and how many. Fails where less than none would be left.';

-- Lists of first pages are made again from the daily numbers, by the nightly task. Batches of two
-- sites have no lock in common that would keep them apart here, where both delete lists of their app:
-- so all take the rows in order of key.
CREATE FUNCTION drop_tops(sites bigint[], days integer[]) RETURNS void
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
            FROM unnest(sites, days) AS d (site_id, day_id)
            JOIN pages AS p ON p.id = d.site_id
            CROSS JOIN LATERAL (VALUES (0), (p.id)) AS l (site_id)
        ) AS c
        JOIN tops AS o ON o.app_id = c.app_id AND o.site_id = c.site_id AND o.day_id = c.day_id
        ORDER BY o.app_id, o.site_id, o.day_id, o.by
        FOR UPDATE OF o
    ));
END
$$;

COMMENT ON FUNCTION drop_tops(bigint[], integer[]) IS 'Deletes the lists of first pages of some sites, and of their apps as a whole, on the day beside each.';

-- Decides what each visit is, and writes it down, as VisitsRecord does for visits of a site's last
-- day. Three tables come as arrays: pairs of target and visitor, each once, in order of arrival;
-- visits, each (pair, day) once, in order of arrival; and for each (target, day) the site (0: it is
-- one) and how many visits there are. Hot of the counters has been added. Returns for each visit its
-- place, the visitor's rank, whether the visitor came to the target for the first time with it, and
-- whether it was the first on its day.
--
-- The days of a pair, those that are there and those that come, make one line, in which each has the
-- one before it: so it does not matter in which order they are told.
CREATE FUNCTION record_late_visits(
    pair_pages bigint[], pair_ips inet[],
    visit_pairs integer[], visit_days integer[],
    targets bigint[], sites bigint[], target_days integer[], hots bigint[]
) RETURNS TABLE (place integer, rank bigint, newcomer boolean, counted boolean)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
SET enable_nestloop = off -- what comes as arrays is joined with itself, and not row by row; rows of tables are looked up one by one all the same
AS $$
#variable_conflict use_column
DECLARE
    closed integer[] := ARRAY(SELECT c.day_id FROM closed_days AS c WHERE c.day_id = ANY (target_days));
    -- Of the pairs.
    known_ranks  bigint[];
    known_firsts integer[];
    known_lasts  integer[];
    -- The days that are there.
    day_pairs     integer[];
    there_days    integer[];
    previous_days integer[];
    -- What is returned.
    places    integer[];
    ranks     bigint[];
    newcomers boolean[];
    counts    boolean[];
    -- Visits that were not there, of closed days.
    new_pages bigint[];
    new_days  integer[];
    new_ips   inet[];
    -- Returns that change.
    link_pages    bigint[];
    link_days     integer[];
    link_previous integer[];
    link_changes  bigint[];
    -- Days whose new visitors turn out to have come before.
    moved_pages    bigint[];
    moved_days     integer[];
    moved_sites    bigint[];
    moved_visitors bigint[];
BEGIN
    SELECT array_agg(v.rank ORDER BY p.pair), array_agg(v.first_day ORDER BY p.pair), array_agg(v.last_day ORDER BY p.pair)
    INTO known_ranks, known_firsts, known_lasts
    FROM unnest(pair_pages, pair_ips) WITH ORDINALITY AS p (page_id, ip, pair)
    LEFT JOIN LATERAL (
        SELECT w.rank, w.first_day, w.last_day
        FROM visitors AS w
        WHERE w.page_id = p.page_id
          AND w.ip BETWEEN p.ip AND p.ip
        ORDER BY w.page_id, w.ip
        LIMIT 1
    ) AS v ON true;

    SELECT l.day_pairs, l.days, l.previous_days
    INTO day_pairs, there_days, previous_days
    FROM (
        SELECT array_agg(p.pair::integer) AS pairs, array_agg(p.page_id) AS pages, array_agg(p.ip) AS ips,
               array_agg(p.last_day) AS last_days, array_agg(a.first_day) AS first_days
        FROM unnest(pair_pages, pair_ips, known_lasts) WITH ORDINALITY AS p (page_id, ip, last_day, pair)
        JOIN (SELECT v.pair, min(v.day_id) AS first_day FROM unnest(visit_pairs, visit_days) AS v (pair, day_id) GROUP BY v.pair) AS a ON a.pair = p.pair
        WHERE p.last_day >= a.first_day
    ) AS w
    CROSS JOIN LATERAL later_days(w.pairs, w.pages, w.ips, w.last_days, w.first_days) AS l;

    WITH asked AS (
        SELECT v.pair, v.day_id, v.place::integer AS place
        FROM unnest(visit_pairs, visit_days) WITH ORDINALITY AS v (pair, day_id, place)
    ), pairs AS MATERIALIZED (
        SELECT p.pair::integer AS pair, p.page_id, p.ip, p.first_day, p.last_day, a.from_day, a.to_day, a.place,
               p.rank IS NULL AS newcomer,
               CASE
                   WHEN p.rank IS NOT NULL THEN p.rank
                   ELSE (SELECT c.uv FROM counters AS c WHERE c.page_id = p.page_id)
                            + row_number() OVER (PARTITION BY p.page_id, p.rank IS NULL ORDER BY a.place)
               END AS rank
        FROM unnest(pair_pages, pair_ips, known_ranks, known_firsts, known_lasts) WITH ORDINALITY
                 AS p (page_id, ip, rank, first_day, last_day, pair)
        JOIN (SELECT a.pair, min(a.day_id) AS from_day, max(a.day_id) AS to_day, min(a.place) AS place FROM asked AS a GROUP BY a.pair) AS a
            ON a.pair = p.pair
    ), lines AS (
        SELECT d.pair, d.day_id, max(d.place) AS place, max(d.was) AS was -- was: its previous day; null: it is not there yet
        FROM (
            SELECT a.pair, a.day_id, a.place, NULL::integer AS was
            FROM asked AS a
            UNION ALL
            SELECT l.pair, l.day_id, NULL, l.previous_day
            FROM unnest(day_pairs, there_days, previous_days) AS l (pair, day_id, previous_day)
        ) AS d
        GROUP BY d.pair, d.day_id
    ), linked AS MATERIALIZED (
        SELECT l.pair, p.page_id, p.ip, l.day_id, l.place, l.was, p.rank, p.newcomer AND l.place = p.place AS newcomer,
               coalesce(lag(l.day_id) OVER (of_pair ORDER BY l.day_id), min(l.was) OVER of_pair, p.last_day, 0) AS previous_day
        FROM lines AS l
        JOIN pairs AS p ON p.pair = l.pair
        WINDOW of_pair AS (PARTITION BY l.pair)
    ), target_sites AS (
        SELECT DISTINCT t.page_id, coalesce(nullif(t.site_id, 0), t.page_id) AS site_id
        FROM unnest(targets, sites) AS t (page_id, site_id)
    ), newcomers AS (
        INSERT INTO visitors (page_id, ip, rank, first_day, last_day)
        SELECT p.page_id, p.ip, p.rank, p.from_day, p.to_day
        FROM pairs AS p
        WHERE p.newcomer
        ORDER BY p.page_id, p.ip
    ), returned AS (
        INSERT INTO visitors AS v (page_id, ip, rank, first_day, last_day)
        SELECT p.page_id, p.ip, p.rank, least(p.first_day, p.from_day), greatest(p.last_day, p.to_day)
        FROM pairs AS p
        WHERE NOT p.newcomer
          AND (p.from_day < p.first_day OR p.to_day > p.last_day)
        ORDER BY p.page_id, p.ip
        ON CONFLICT (page_id, ip) DO UPDATE
            SET first_day = excluded.first_day,
                last_day  = excluded.last_day
    ), visited AS (
        INSERT INTO visits (page_id, day_id, previous_day, ip)
        SELECT l.page_id, l.day_id, l.previous_day, l.ip
        FROM linked AS l
        WHERE l.was IS NULL
        ORDER BY l.day_id, l.page_id, l.ip
    ), relinked AS (
        INSERT INTO visits AS v (page_id, day_id, previous_day, ip)
        SELECT l.page_id, l.day_id, l.previous_day, l.ip
        FROM linked AS l
        WHERE l.previous_day <> l.was
        ORDER BY l.day_id, l.page_id, l.ip
        ON CONFLICT (page_id, day_id, ip) DO UPDATE
            SET previous_day = excluded.previous_day
    ), dated AS (
        INSERT INTO days AS d (page_id, site_id, day_id, hot, pv, new_visitors)
        SELECT n.page_id, nullif(max(n.site_id), 0), n.day_id, sum(n.hot), sum(n.pv), sum(n.new_visitors)
        FROM (
            SELECT t.page_id, t.site_id, t.day_id, t.hot, 0 AS pv, 0 AS new_visitors
            FROM unnest(targets, sites, target_days, hots) AS t (page_id, site_id, day_id, hot)
            UNION ALL
            SELECT l.page_id, 0, l.day_id, 0, 1, (l.previous_day = 0)::integer
            FROM linked AS l
            WHERE l.was IS NULL
        ) AS n
        GROUP BY n.page_id, n.day_id
        ORDER BY n.page_id, n.day_id
        ON CONFLICT (page_id, day_id) DO UPDATE
            SET hot          = d.hot + excluded.hot,
                pv           = d.pv + excluded.pv,
                new_visitors = d.new_visitors + excluded.new_visitors
    ), summed AS (
        INSERT INTO counters AS c (page_id, hot, pv, uv)
        SELECT l.page_id, count(*), count(*), sum(l.newcomer::integer)
        FROM linked AS l
        WHERE l.was IS NULL
        GROUP BY l.page_id
        ON CONFLICT (page_id) DO UPDATE
            SET pv = c.pv + excluded.pv,
                uv = c.uv + excluded.uv
    ), changes AS MATERIALIZED (
        SELECT c.page_id, c.day_id, c.previous_day, sum(c.n)::bigint AS n
        FROM (
            SELECT l.page_id, l.day_id, l.previous_day, 1 AS n
            FROM linked AS l
            WHERE l.previous_day > 0
              AND l.previous_day IS DISTINCT FROM l.was
            UNION ALL
            SELECT l.page_id, l.day_id, l.was, -1
            FROM linked AS l
            WHERE l.was > 0
              AND l.previous_day <> l.was
        ) AS c
        GROUP BY c.page_id, c.day_id, c.previous_day
        HAVING sum(c.n) <> 0
    ), firsts AS MATERIALIZED (
        SELECT l.page_id, l.day_id, t.site_id, count(*) AS n
        FROM linked AS l
        JOIN target_sites AS t ON t.page_id = l.page_id
        WHERE l.was = 0
          AND l.previous_day > 0
        GROUP BY l.page_id, l.day_id, t.site_id
    )
    SELECT v.*, a.*, c.*, f.*
    INTO places, ranks, newcomers, counts, new_pages, new_days, new_ips,
         link_pages, link_days, link_previous, link_changes, moved_pages, moved_days, moved_sites, moved_visitors
    FROM (SELECT array_agg(l.place), array_agg(l.rank), array_agg(l.newcomer), array_agg(l.was IS NULL)
          FROM linked AS l WHERE l.place IS NOT NULL) AS v
    CROSS JOIN (SELECT array_agg(l.page_id), array_agg(l.day_id), array_agg(l.ip)
                FROM linked AS l WHERE l.was IS NULL AND l.day_id = ANY (closed)) AS a
    CROSS JOIN (SELECT array_agg(c.page_id), array_agg(c.day_id), array_agg(c.previous_day), array_agg(c.n)
                FROM changes AS c) AS c
    CROSS JOIN (SELECT array_agg(f.page_id), array_agg(f.day_id), array_agg(f.site_id), array_agg(f.n)
                FROM firsts AS f) AS f;

    -- What is inserted has to pass the check on days before the conflict is found.
    INSERT INTO days AS d (page_id, day_id, hot, pv, new_visitors)
    SELECT m.page_id, m.day_id, m.n, m.n, m.n
    FROM unnest(moved_pages, moved_days, moved_visitors) AS m (page_id, day_id, n)
    ORDER BY m.page_id, m.day_id
    ON CONFLICT (page_id, day_id) DO UPDATE
        SET new_visitors = d.new_visitors - excluded.new_visitors;

    PERFORM relink_returns(link_pages, link_days, link_previous, link_changes);
    PERFORM add_to_sketches(new_pages, new_days, new_ips);
    PERFORM drop_tops(array_agg(s.site_id), array_agg(s.day_id))
    FROM (
        SELECT t.page_id AS site_id, t.day_id
        FROM unnest(targets, sites, target_days) AS t (page_id, site, day_id)
        WHERE t.site = 0
          AND t.day_id = ANY (closed)
        UNION
        SELECT m.site_id, m.day_id
        FROM unnest(moved_sites, moved_days) AS m (site_id, day_id)
    ) AS s;
    RETURN QUERY SELECT v.* FROM unnest(places, ranks, newcomers, counts) AS v;
END
$$;

COMMENT ON FUNCTION record_late_visits(bigint[], inet[], integer[], integer[], bigint[], bigint[], integer[], bigint[]) IS 'Counts visits of any days that their app keeps, in any order, for targets whose counters the caller holds.';

REVOKE ALL ON FUNCTION later_days(integer[], bigint[], inet[], integer[], integer[]), take_open_returns(bigint[], integer[], integer[], bigint[]),
    relink_returns(bigint[], integer[], integer[], bigint[]), drop_tops(bigint[], integer[]),
    record_late_visits(bigint[], inet[], integer[], integer[], bigint[], bigint[], integer[], bigint[]) FROM PUBLIC;
