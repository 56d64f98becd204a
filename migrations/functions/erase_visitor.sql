-- A visitor is erased in several transactions, each for some of the sites. Each visit locks the counters of its site. So
-- while a transaction holds the counters of a site, no batch is between looking up a visitor of this site and inserting the
-- visitor. A batch that has waited for the counters then fails because the basis has changed, and its instance removes the
-- erased visitor from memory.

CREATE FUNCTION oldest_unseen() RETURNS bigint
LANGUAGE sql
AS $$
    SELECT coalesce(min(x.id), max(s.next))
    FROM (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next) AS s
    LEFT JOIN (SELECT pg_snapshot_xip(pg_current_snapshot())::text::bigint AS id) AS x ON x.id <> pg_current_xact_id()::text::bigint
$$;

COMMENT ON FUNCTION oldest_unseen() IS 'Id of the oldest transaction whose rows may be visible to a later statement, but not to any statement so far: the oldest running transaction or, if none runs, the next one.';

-- For each of its pages, a batch writes the row of the day in the table days. The xmin of this row is the last transaction
-- that wrote it, and age() is how many transactions ago that was.
CREATE FUNCTION visitor_pages_since(sites bigint[], from_days integer[], unseen bigint, addresses inet[]) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN ARRAY(
        SELECT counted.page_id
        FROM (
            SELECT DISTINCT d.page_id
            FROM unnest(sites, from_days) AS s (site_id, from_day)
            JOIN days AS d ON d.site_id = s.site_id AND d.day_id >= s.from_day
            WHERE age(d.xmin) <= (SELECT pg_current_xact_id()::text::bigint + age(pg_current_xact_id()::xid) - unseen)
        ) AS counted
        CROSS JOIN LATERAL (
            SELECT
            FROM visitors AS w
            WHERE w.page_id = counted.page_id
              AND w.ip = ANY (addresses)
            LIMIT 1
        ) AS v);
END
$$;

COMMENT ON FUNCTION visitor_pages_since(bigint[], integer[], bigint, inet[]) IS 'The pages of some sites that the visitor has visited, and for which the transaction unseen, or a later one, has counted visits. Only days of a site from from_day on are searched. The values at one index of the first two arrays are a site and this day.';

-- Deletes the visits of only one day, so that each row is found by the whole key.
CREATE FUNCTION erase_visits(of_day integer, pages bigint[], addresses inet[]) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_custom_plan -- so that only the partition of this day is opened
AS $$
BEGIN
    WITH gone AS (
        DELETE FROM visits AS v
        WHERE v.day_id = of_day
          AND v.page_id = ANY (pages)
          AND v.ip = ANY (addresses)
        RETURNING v.page_id, v.day_id, v.previous_day
    )
    INSERT INTO erased_visits AS e (page_id, day_id, previous_day, visitors)
    SELECT g.page_id, g.day_id, g.previous_day, count(*)
    FROM gone AS g
    GROUP BY g.page_id, g.day_id, g.previous_day
    ON CONFLICT (page_id, day_id, previous_day) DO UPDATE
        SET visitors = e.visitors + excluded.visitors;
END
$$;

COMMENT ON FUNCTION erase_visits(integer, bigint[], inet[]) IS 'Deletes the visits of a visitor on a day, and adds their number to erased_visits, so that they stay counted.';

-- The settings make PostgreSQL find rows only by keys, even if the planner prefers to read a whole table. The reason is that
-- other visits have to wait while this function holds the counters of sites. As much as possible is read before that: the
-- visits that were counted while the targets were searched, and the rows to delete.
CREATE FUNCTION erase_visitor(app integer, of_sites bigint[], addresses inet[]) RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    unseen  bigint;
    again   bigint;
    pages   bigint[];  -- the targets that the visitor has visited
    homes   bigint[];  -- the site of each target
    firsts  integer[]; -- the first day of the visitor at each target
    lasts   integer[]; -- the last day of the visitor at each target
    ends    integer[]; -- the last counted day of the site of each target
    visited bigint[];  -- the targets that may have visits on the site's last day or later
    sites   bigint[];
    days    integer[]; -- the last counted day of each site
    since   bigint[];
    erased  bigint;
    day     integer;
    old     bigint[];
BEGIN
    PERFORM hold_app_days(app);
    DELETE FROM here AS h WHERE h.site_id = ANY (of_sites) AND h.visitors && addresses;
    unseen := oldest_unseen();
    SELECT array_agg(f.id), array_agg(f.site_id), array_agg(f.first_day), array_agg(f.last_day), array_agg(f.site_day),
           array_agg(f.id) FILTER (WHERE f.last_day >= f.site_day OR f.id = f.site_id) -- a visit to a page is also one to its site
    INTO pages, homes, firsts, lasts, ends, visited
    FROM (
        SELECT p.id, coalesce(p.site_id, p.id) AS site_id, v.first_day, v.last_day,
               coalesce((SELECT max(d.day_id) FROM days AS d WHERE d.page_id = coalesce(p.site_id, p.id)), 0) AS site_day
        FROM pages AS p
        CROSS JOIN LATERAL (
            SELECT w.first_day, w.last_day
            FROM visitors AS w
            WHERE w.page_id = p.id
              AND w.ip = ANY (addresses)
            OFFSET 0
        ) AS v
        WHERE p.id = ANY (of_sites)
           OR p.site_id = ANY (of_sites)
    ) AS f;
    IF pages IS NULL THEN
        RETURN 0;
    END IF;

    -- Only late visits count on days before the last day of their site, and hold_app_days() already makes late visits wait.
    -- So this loop holds no lock that any other visit waits for, however long the loop takes.
    FOR day, old IN
        SELECT d.day, array_agg(f.id)
        FROM visits_partitions() AS d
        JOIN unnest(pages, firsts, lasts, ends) AS f (id, first_day, last_day, site_day)
          ON d.day BETWEEN f.first_day AND f.last_day AND d.day < f.site_day
        GROUP BY d.day
        ORDER BY d.day
    LOOP
        PERFORM erase_visits(day, old, addresses);
    END LOOP;

    SELECT array_agg(s.id), array_agg(s.day)
    INTO sites, days
    FROM (SELECT DISTINCT f.id, f.day FROM unnest(homes, ends) AS f (id, day)) AS s;
    again   := oldest_unseen();
    since   := visitor_pages_since(sites, days, unseen, addresses);
    pages   := pages || since;
    visited := visited || since;
    -- Reads the rows that will be deleted, with a weak lock (FOR KEY SHARE) that no visit has to wait for. After that, the
    -- blocks of these rows are in memory and in the WAL.
    PERFORM FROM visitors AS v WHERE v.page_id = ANY (pages) AND v.ip = ANY (addresses) FOR KEY SHARE;
    PERFORM FROM visits AS v WHERE v.day_id = ANY (days) AND v.page_id = ANY (visited) AND v.ip = ANY (addresses) FOR KEY SHARE;

    PERFORM FROM counters AS c WHERE c.page_id = ANY (sites) ORDER BY c.page_id FOR UPDATE; -- from here on visits wait
    since   := visitor_pages_since(sites, days, again, addresses);
    pages   := pages || since;
    visited := visited || since;
    WITH gone AS (
        DELETE FROM visitors AS v
        WHERE v.page_id = ANY (pages)
          AND v.ip = ANY (addresses)
        RETURNING v.page_id, v.rank
    )
    SELECT erase_ranks(array_agg(g.page_id), array_agg(g.rank)) INTO erased FROM gone AS g;
    FOR day IN
        SELECT DISTINCT d.day_id
        FROM unnest(sites, days) AS s (id, day)
        JOIN days AS d ON d.page_id = s.id AND d.day_id >= s.day
        ORDER BY d.day_id
    LOOP
        PERFORM erase_visits(day, visited, addresses);
    END LOOP;
    RETURN erased;
END
$$;

COMMENT ON FUNCTION erase_visitor(integer, bigint[], inet[]) IS 'Removes the addresses of a visitor from some sites and their pages, and returns the number of these targets. No other visitor gets the erased ranks.';

-- An instance may copy a row of the previous period into the present period until that row is deleted. So the rows of the
-- previous period are deleted first, and then the copies. Rows are locked in the same order as by PeopleRenew.
CREATE FUNCTION erase_people(app integer, ids inet[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    open      smallint := people_period();
    of_period smallint;
BEGIN
    FOREACH of_period IN ARRAY ARRAY[1 - open, open] LOOP
        WITH going AS MATERIALIZED (
            SELECT p.id
            FROM people AS p
            WHERE p.period = of_period
              AND p.app_id = app
              AND (p.id = ANY (ids) OR p.person = ANY (ids))
            ORDER BY p.id
            FOR UPDATE
        )
        DELETE FROM people AS p
        USING going AS g
        WHERE p.period = of_period
          AND p.app_id = app
          AND p.id = g.id;
    END LOOP;
END
$$;

COMMENT ON FUNCTION erase_people(integer, inet[]) IS 'Deletes the rows of some visitor ids, and the rows of ids that lead to them.';
