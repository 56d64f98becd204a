-- Visits that may be earlier than others of their visitors: each is linked in between the day
-- before it and the one after, as if it had come in time. The caller holds the counters of the
-- targets, and has their days kept as they are (require_past_days).

-- The day on which each visitor came after a day that is asked for, or that day itself, and the day
-- before it. Visitors are followed from their last day back, all who have come to a day at once,
-- the latest day first: so each partition is opened once, and only where somebody came. A statement
-- is planned for each day, since one for all days would lock them all.
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
            PERFORM read_partitions_anew(); -- this session may be the one that does not know of the day
            have_read_anew := true;
            CONTINUE;
        ELSIF -1 = ANY (walked.previous_days) THEN
            RAISE EXCEPTION 'a visitor has no visit on day %, which is one of theirs', day
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

COMMENT ON FUNCTION days_after(integer[], bigint[], inet[], integer[], integer[]) IS 'The first day from a day on which each visitor came, and the one before it. The arrays are one table: a number of the row, target, visitor, the day, and the last one of the visitor, which is not before it. Fails where the row of a day is missing.';

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

-- Those of days that are closed are packed, but for what the daily task has not come to yet.
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

-- Lists of top pages are made again from the daily numbers, by the daily task. Batches of two
-- sites have no lock in common that would keep them apart here, where both delete lists of their
-- app: so all take the rows in order of key.
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

COMMENT ON FUNCTION drop_tops(bigint[], integer[]) IS 'Deletes the lists of top pages of the sites of some targets, and of their apps as a whole, on the day beside each.';

-- Decides what each visit is, and writes it down, as VisitsRecord does for visits of a site's last
-- day. Two tables come as arrays: visits, each day of a pair of target and visitor once, in order
-- of arrival; and for each (target, day) the site (0: it is one) and how many visits there are. Hot
-- of the counters has been added. Returns for each row of the first its place, the visitor's rank,
-- whether the visitor came to the target for the first time with it, and whether it was the first
-- on its day.
--
-- The first visits of all pairs, whose turn is 1, are counted together, then the second ones: so
-- each is linked in between two days that are there.
CREATE FUNCTION record_late_visits(
    pages bigint[], ips inet[], day_ids integer[], turns integer[],
    targets bigint[], sites bigint[], target_days integer[], hots bigint[],
    tags bytea
) RETURNS TABLE (place integer, rank bigint, newcomer boolean, counted boolean)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
SET enable_nestloop = off -- what comes as arrays is joined with itself, and not row by row; rows of tables are looked up one by one all the same
AS $$
#variable_conflict use_column
DECLARE
    closed integer[] := ARRAY(SELECT c.day_id FROM closed_days AS c WHERE c.day_id = ANY (target_days));
    -- The visits of a turn, and what is known of their visitors.
    places   integer[];
    of_pages bigint[];
    of_ips   inet[];
    at_days  integer[];
    ranks    bigint[];
    firsts   integer[];
    lasts    integer[];
    -- Of those that are not after the last day of their visitor: the day from then on, and the one
    -- before.
    late_places   integer[];
    next_days     integer[];
    previous_days integer[];
    -- What is returned.
    done_places integer[];
    done_ranks  bigint[];
    newcomers   boolean[];
    counts      boolean[];
    -- The same of all turns, for tag_news.
    tag_places integer[] := '{}';
    verdicts    integer[] := '{}';
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
    moved_visitors bigint[];
    -- Targets and days of which lists of top pages may be wrong now.
    changed_pages bigint[]  := '{}';
    changed_days  integer[] := '{}';
BEGIN
    FOR nth IN 1 .. (SELECT coalesce(max(t.turn), 1) FROM unnest(turns) AS t (turn)) LOOP
        SELECT array_agg(a.place), array_agg(a.page_id), array_agg(a.ip), array_agg(a.day_id),
               array_agg(v.rank), array_agg(v.first_day), array_agg(v.last_day)
        INTO places, of_pages, of_ips, at_days, ranks, firsts, lasts
        FROM (
            SELECT unnest(pages) AS page_id, unnest(ips) AS ip, unnest(day_ids) AS day_id, unnest(turns) AS turn, generate_subscripts(turns, 1) AS place
        ) AS a
        LEFT JOIN LATERAL (
            SELECT w.rank, w.first_day, w.last_day
            FROM visitors AS w
            WHERE w.page_id = a.page_id
              AND w.ip BETWEEN a.ip AND a.ip
            ORDER BY w.page_id, w.ip
            LIMIT 1
        ) AS v ON true
        WHERE a.turn = nth;

        SELECT n.found_places, n.next_days, n.previous_days
        INTO late_places, next_days, previous_days
        FROM (
            SELECT array_agg(f.place) AS places, array_agg(f.page_id) AS pages, array_agg(f.ip) AS ips, array_agg(f.day_id) AS days, array_agg(f.last_day) AS last_days
            FROM (
                SELECT unnest(places) AS place, unnest(of_pages) AS page_id, unnest(of_ips) AS ip, unnest(at_days) AS day_id, unnest(lasts) AS last_day
            ) AS f
            WHERE f.last_day >= f.day_id
        ) AS w
        CROSS JOIN LATERAL days_after(w.places, w.pages, w.ips, w.days, w.last_days) AS n;

        WITH found AS MATERIALIZED (
            SELECT unnest(places) AS place, unnest(of_pages) AS page_id, unnest(of_ips) AS ip, unnest(at_days) AS day_id,
                   unnest(ranks) AS rank, unnest(firsts) AS first_day, unnest(lasts) AS last_day
        ), late AS (
            SELECT unnest(late_places) AS place, unnest(next_days) AS next_day, unnest(previous_days) AS previous_day
        ), decided AS MATERIALIZED (
            SELECT f.place, f.page_id, f.ip, f.day_id, f.rank, f.first_day, f.last_day, l.next_day,
                   coalesce(l.previous_day, f.last_day) AS previous_day, false AS newcomer, l.next_day IS DISTINCT FROM f.day_id AS counted
            FROM found AS f
            LEFT JOIN late AS l ON l.place = f.place
            WHERE f.rank IS NOT NULL
            UNION ALL
            SELECT f.place, f.page_id, f.ip, f.day_id,
                   (SELECT c.uv FROM counters AS c WHERE c.page_id = f.page_id) + row_number() OVER (PARTITION BY f.page_id ORDER BY f.place),
                   NULL, NULL, NULL, 0, true, true
            FROM found AS f
            WHERE f.rank IS NULL
        ), newcomers AS (
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
            INSERT INTO visits (page_id, day_id, previous_day, ip)
            SELECT d.page_id, d.day_id, d.previous_day, d.ip
            FROM decided AS d
            WHERE d.counted
            ORDER BY d.day_id, d.page_id, d.ip
        ), relinked AS (
            INSERT INTO visits AS v (page_id, day_id, previous_day, ip)
            SELECT d.page_id, d.next_day, d.day_id, d.ip
            FROM decided AS d
            WHERE d.next_day > d.day_id
            ORDER BY d.next_day, d.page_id, d.ip
            ON CONFLICT (page_id, day_id, ip) DO UPDATE
                SET previous_day = excluded.previous_day
        ), dated AS (
            INSERT INTO days AS d (page_id, site_id, day_id, hot, pv, new_visitors)
            SELECT n.page_id, nullif(max(n.site_id), 0), n.day_id, sum(n.hot), sum(n.pv), sum(n.new_visitors)
            FROM (
                SELECT t.page_id, t.site_id, t.day_id, t.hot, 0 AS pv, 0 AS new_visitors
                FROM (SELECT unnest(targets) AS page_id, unnest(sites) AS site_id, unnest(target_days) AS day_id, unnest(hots) AS hot) AS t
                WHERE nth = 1
                UNION ALL
                SELECT d.page_id, 0, d.day_id, (nth > 1)::integer, 1, (d.previous_day = 0)::integer -- to pass the check on days
                FROM decided AS d
                WHERE d.counted
            ) AS n
            GROUP BY n.page_id, n.day_id
            ORDER BY n.page_id, n.day_id
            ON CONFLICT (page_id, day_id) DO UPDATE
                SET hot          = CASE WHEN nth = 1 THEN d.hot + excluded.hot ELSE d.hot END,
                    pv           = d.pv + excluded.pv,
                    new_visitors = d.new_visitors + excluded.new_visitors
        ), summed AS (
            INSERT INTO counters AS c (page_id, hot, pv, uv)
            SELECT d.page_id, count(*), count(*), sum(d.newcomer::integer)
            FROM decided AS d
            WHERE d.counted
            GROUP BY d.page_id
            ON CONFLICT (page_id) DO UPDATE
                SET pv = c.pv + excluded.pv,
                    uv = c.uv + excluded.uv
        ), changes AS (
            SELECT c.page_id, c.day_id, c.previous_day, sum(c.n)::bigint AS n
            FROM (
                SELECT d.page_id, d.day_id, d.previous_day, 1 AS n
                FROM decided AS d
                WHERE d.counted
                  AND d.previous_day > 0
                UNION ALL
                SELECT d.page_id, d.next_day, l.previous_day, l.n
                FROM decided AS d
                CROSS JOIN LATERAL (VALUES (d.day_id, 1), (d.previous_day, -1)) AS l (previous_day, n)
                WHERE d.next_day > d.day_id
                  AND l.previous_day > 0
            ) AS c
            GROUP BY c.page_id, c.day_id, c.previous_day
        ), moved AS (
            SELECT d.page_id, d.next_day AS day_id, count(*) AS n
            FROM decided AS d
            WHERE d.next_day > d.day_id
              AND d.previous_day = 0
            GROUP BY d.page_id, d.next_day
        )
        SELECT v.*, a.*, c.*, m.*
        INTO done_places, done_ranks, newcomers, counts, new_pages, new_days, new_ips,
             link_pages, link_days, link_previous, link_changes, moved_pages, moved_days, moved_visitors
        FROM (SELECT array_agg(d.place), array_agg(d.rank), array_agg(d.newcomer), array_agg(d.counted) FROM decided AS d) AS v
        CROSS JOIN (SELECT array_agg(d.page_id), array_agg(d.day_id), array_agg(d.ip)
                    FROM decided AS d WHERE d.counted AND d.day_id = ANY (closed)) AS a
        CROSS JOIN (SELECT array_agg(c.page_id), array_agg(c.day_id), array_agg(c.previous_day), array_agg(c.n)
                    FROM changes AS c WHERE c.n <> 0) AS c
        CROSS JOIN (SELECT array_agg(m.page_id), array_agg(m.day_id), array_agg(m.n)
                    FROM moved AS m) AS m;

        -- What is inserted has to pass the check on days before the conflict is found.
        INSERT INTO days AS d (page_id, day_id, hot, pv, new_visitors)
        SELECT m.page_id, m.day_id, m.n, m.n, m.n
        FROM unnest(moved_pages, moved_days, moved_visitors) AS m (page_id, day_id, n)
        ORDER BY m.page_id, m.day_id
        ON CONFLICT (page_id, day_id) DO UPDATE
            SET new_visitors = d.new_visitors - excluded.new_visitors;

        IF link_pages IS NOT NULL THEN
            PERFORM relink_returns(link_pages, link_days, link_previous, link_changes);
        END IF;
        IF new_pages IS NOT NULL THEN
            PERFORM add_to_sketches(new_pages, new_days, new_ips);
        END IF;
        changed_pages := changed_pages || moved_pages;
        changed_days := changed_days || moved_days;
        tag_places := tag_places || done_places;
        verdicts := verdicts || ARRAY(SELECT d.counted::integer + d.newcomer::integer FROM unnest(counts, newcomers) WITH ORDINALITY AS d (counted, newcomer, nth) ORDER BY d.nth);
        RETURN QUERY SELECT unnest(done_places), unnest(done_ranks), unnest(newcomers), unnest(counts);
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

COMMENT ON FUNCTION record_late_visits(bigint[], inet[], integer[], integer[], bigint[], bigint[], integer[], bigint[], bytea) IS 'Counts visits of any days that their app keeps, in any order, for targets whose counters the caller holds.';

REVOKE ALL ON FUNCTION days_after(integer[], bigint[], inet[], integer[], integer[]), take_open_returns(bigint[], integer[], integer[], bigint[]),
    relink_returns(bigint[], integer[], integer[], bigint[]), drop_tops(bigint[], integer[]),
    record_late_visits(bigint[], inet[], integer[], integer[], bigint[], bigint[], integer[], bigint[], bytea) FROM PUBLIC;
