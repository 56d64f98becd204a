-- The checks of `footfall verify`. Each check compares numbers that are read in the same snapshot: a range of targets
-- with all their rows, or some sites with their pages. A snapshot lasts only about a second, because an old snapshot
-- would keep PostgreSQL from removing the row versions that every visit creates.
--
-- Each check returns a row for each measure:
--   held       how many numbers were compared
--   behind     from how many rows they were computed
--   broken     how many numbers are wrong
--   offenders  the first wrong numbers, with six columns: target, day, previous day, the stored number, and the least and
--              the greatest right number
-- The parameters low and high are the first and the last target of a range. If whole is true, all targets of the range are
-- checked, and otherwise only the listed ones.
--
-- Rows of the largest tables are first compared with a strict condition (strictly): a row that meets it is right in all
-- measures. Nearly all rows meet it, and are only counted. The other rows are compared for each measure separately.
--
-- The functions are in PL/pgSQL, where plan_cache_mode makes PostgreSQL plan the queries again for each range.
-- PostgreSQL before 18 ignores this setting in SQL functions.

CREATE FUNCTION first_offenders(offenders bigint[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE
AS $$
    SELECT coalesce(offenders[:100000], '{}')
$$;

COMMENT ON FUNCTION first_offenders(bigint[]) IS 'The first 100,000 of the wrong numbers that a check has found.';

-- The ranks of a target must be 1 to uv, each once. The count of ranks, their sum, and the sum of their squares show
-- this. Ranks are compared one by one only if one of these sums is wrong.
CREATE FUNCTION verify_totals(low bigint, high bigint, whole boolean, listed bigint[])
RETURNS TABLE (measure text, held bigint, behind bigint, broken bigint, offenders bigint[])
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY
    WITH parts AS (
        SELECT p.id AS page_id, 1 AS pages, 0 AS hot, 0 AS pv, 0 AS uv, 0 AS visitors, 0 AS erased, 0 AS last_rank, 0 AS ranks, 0 AS squares
        FROM pages AS p
        WHERE p.id BETWEEN low AND high
          AND (whole OR p.id = ANY (listed))
        UNION ALL
        SELECT c.page_id, 0, c.hot, c.pv, c.uv, 0, 0, 0, 0, 0
        FROM counters AS c
        WHERE c.page_id BETWEEN low AND high
          AND (whole OR c.page_id = ANY (listed))
        UNION ALL
        SELECT v.page_id, 0, 0, 0, 0, count(*), 0, max(v.rank), sum(v.rank), sum(v.rank * v.rank)
        FROM visitors AS v
        WHERE v.page_id BETWEEN low AND high
          AND (whole OR v.page_id = ANY (listed))
        GROUP BY v.page_id
        UNION ALL
        SELECT e.page_id, 0, 0, 0, 0, 0, count(*), max(e.rank), sum(e.rank), sum(e.rank * e.rank)
        FROM erased_ranks AS e
        WHERE e.page_id BETWEEN low AND high
          AND (whole OR e.page_id = ANY (listed))
        GROUP BY e.page_id
    ), totals AS (
        SELECT o.page_id, sum(o.pages) AS pages, sum(o.hot) AS hot, sum(o.pv) AS pv, sum(o.uv) AS uv, sum(o.visitors) AS visitors,
               sum(o.erased) AS erased, max(o.last_rank) AS last_rank, sum(o.ranks) AS ranks, sum(o.squares) AS squares
        FROM parts AS o
        GROUP BY o.page_id
    ), ranked AS (
        SELECT s.page_id, s.pages, s.hot, s.pv, s.uv, s.visitors, s.erased, s.last_rank,
               CASE
                   WHEN s.ranks = s.uv * (s.uv + 1) / 2 AND s.squares = s.uv * (s.uv + 1) * (2 * s.uv + 1) / 6 THEN s.uv
                   ELSE (SELECT count(DISTINCT r.rank)
                         FROM (SELECT v.page_id, v.rank FROM visitors AS v UNION ALL SELECT e.page_id, e.rank FROM erased_ranks AS e) AS r
                         WHERE r.page_id = s.page_id
                           AND r.rank BETWEEN 1 AND s.uv)
               END AS taken
        FROM totals AS s
    ), checks AS (
        SELECT m.measure, m.behind, t.page_id, m.stored, m.least, m.most
        FROM ranked AS t
        CROSS JOIN LATERAL (
            SELECT unnest(ARRAY['order', 'visitors', 'erased', 'last rank', 'ranks', 'page of totals']::text[]) AS measure,
                   unnest(ARRAY[1, t.visitors + t.erased, t.erased, 1, 1, 1]::bigint[]) AS behind,
                   unnest(ARRAY[t.pv, t.uv, t.erased, t.last_rank, t.taken, t.pages]::bigint[]) AS stored,
                   unnest(ARRAY[t.uv, t.visitors + t.erased, 0, t.uv, t.uv, 1]::bigint[]) AS least,
                   unnest(ARRAY[t.hot, t.visitors + t.erased, t.erased, t.uv, t.uv, 1]::bigint[]) AS most
        ) AS m
    )
    SELECT c.measure::text                                                  AS measure,
           count(*)                                                         AS held,
           coalesce(sum(c.behind), 0)::bigint                               AS behind,
           count(*) FILTER (WHERE c.stored < c.least OR c.stored > c.most)  AS broken,
           first_offenders((array_agg(ARRAY[c.page_id, 0, 0, c.stored, c.least, c.most])
                         FILTER (WHERE c.stored < c.least OR c.stored > c.most))::bigint[]) AS offenders
    FROM checks AS c
    GROUP BY c.measure;
END
$$;

COMMENT ON FUNCTION verify_totals(bigint, bigint, boolean, bigint[]) IS 'Compares counters with the rows of visitors and of erased visitors.';

-- A visitor who is not new on a day is a returning visitor. Pages (deleted) have numbers of neither new nor returning
-- visitors. So it is unknown which of their visitors are new.
CREATE FUNCTION verify_days(low bigint, high bigint, whole boolean, listed bigint[])
RETURNS TABLE (measure text, held bigint, behind bigint, broken bigint, offenders bigint[])
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY
    WITH back AS (
        SELECT r.page_id, r.day_id, sum(r.visitors)::bigint AS visitors
        FROM (
            SELECT o.page_id, o.day_id, o.visitors
            FROM open_returns AS o
            UNION ALL
            SELECT p.page_id, p.day_id, returned_from_before(p.previous_days, p.visitors, 0)
            FROM packed_returns AS p
        ) AS r
        WHERE r.page_id BETWEEN low AND high
          AND (whole OR r.page_id = ANY (listed))
        GROUP BY r.page_id, r.day_id
    ), dated AS (
        SELECT d.page_id, d.site_id, d.day_id, d.hot, d.pv, d.new_visitors
        FROM days AS d
        WHERE d.page_id BETWEEN low AND high
          AND (whole OR d.page_id = ANY (listed))
    ), daily AS MATERIALIZED (
        SELECT coalesce(d.page_id, b.page_id) AS page_id, coalesce(d.day_id, b.day_id) AS day_id, d.site_id,
               coalesce(d.hot, 0) AS hot, coalesce(d.pv, 0) AS pv, coalesce(d.new_visitors, 0) AS new_visitors,
               coalesce(d.pv, 0) - coalesce(d.new_visitors, 0) - coalesce(b.visitors, 0) AS unknown
        FROM dated AS d
        FULL JOIN back AS b ON b.page_id = d.page_id AND b.day_id = d.day_id
    ), targets AS MATERIALIZED (
        SELECT p.id AS page_id, p.site_id,
               coalesce(k.from_day, 0) AS from_day,
               p.site_id IS NOT NULL AND p.uri LIKE '%/(deleted)' AS deleted
        FROM pages AS p
        LEFT JOIN visits_kept AS k ON k.app_id = p.app_id
        WHERE p.id BETWEEN low AND high
          AND (whole OR p.id = ANY (listed))
    ), sums AS (
        SELECT d.page_id, sum(d.hot) AS hot, sum(d.pv) AS pv, sum(d.new_visitors) AS new_visitors, sum(greatest(d.unknown, 0)) AS unknown
        FROM daily AS d
        GROUP BY d.page_id
    ), judged AS MATERIALIZED (
        SELECT d.page_id, d.day_id, d.pv, d.unknown,
               (t.page_id IS NOT NULL)::integer          AS has_page,
               coalesce(d.site_id, 0)                    AS site_id,
               coalesce(t.site_id, 0)                    AS site_of_page,
               coalesce(t.deleted, false)                AS deleted,
               d.unknown = 0 AND t.page_id IS NOT NULL AND d.site_id IS NOT DISTINCT FROM t.site_id AS strictly
        FROM daily AS d
        LEFT JOIN targets AS t ON t.page_id = d.page_id
    ), checks AS (
        SELECT m.measure, 1 AS held, t.page_id, 0 AS day_id, m.stored, m.least, m.most
        FROM targets AS t
        LEFT JOIN sums AS s     ON s.page_id = t.page_id
        LEFT JOIN counters AS c ON c.page_id = t.page_id AND c.page_id BETWEEN low AND high
        CROSS JOIN LATERAL (
            SELECT unnest(ARRAY['days hot', 'days pv', 'new visitors']::text[]) AS measure,
                   unnest(ARRAY[coalesce(s.hot, 0), coalesce(s.pv, 0), coalesce(s.new_visitors, 0)]::bigint[]) AS stored,
                   unnest(ARRAY[coalesce(c.hot, 0), coalesce(c.pv, 0), coalesce(c.uv, 0) - coalesce(s.unknown, 0)]::bigint[]) AS least,
                   unnest(ARRAY[coalesce(c.hot, 0), coalesce(c.pv, 0), coalesce(c.uv, 0)]::bigint[]) AS most
        ) AS m
        UNION ALL
        SELECT unnest(ARRAY['new or returned', 'page of days', 'site of days']), count(*), 0, 0, 0, 0, 0
        FROM judged AS j
        WHERE j.strictly
        UNION ALL
        SELECT m.measure, 1, j.page_id, j.day_id, m.stored, m.least, m.most
        FROM judged AS j
        CROSS JOIN LATERAL (
            SELECT unnest(ARRAY['new or returned', 'page of days', 'site of days']::text[]) AS measure,
                   unnest(ARRAY[j.pv - j.unknown, j.has_page, j.site_id]::bigint[]) AS stored,
                   unnest(ARRAY[CASE WHEN j.deleted THEN 0 ELSE j.pv END, 1, j.site_of_page]::bigint[]) AS least,
                   unnest(ARRAY[CASE WHEN j.deleted THEN 0 ELSE j.pv END, 1, j.site_of_page]::bigint[]) AS most
        ) AS m
        WHERE NOT j.strictly
        UNION ALL
        SELECT 'days before rows', count(*), 0, 0, 0, 0, 0
        FROM daily AS d
        JOIN targets AS t ON t.page_id = d.page_id
        WHERE d.day_id < t.from_day
        UNION ALL
        SELECT 'days with unknown', count(*), 0, 0, 0, 0, 0
        FROM daily AS d
        WHERE d.unknown > 0
    )
    SELECT c.measure::text                                                  AS measure,
           sum(c.held)::bigint                                              AS held,
           sum(c.held)::bigint                                              AS behind,
           count(*) FILTER (WHERE c.stored < c.least OR c.stored > c.most)  AS broken,
           first_offenders((array_agg(ARRAY[c.page_id, c.day_id, 0, c.stored, c.least, c.most])
                         FILTER (WHERE c.stored < c.least OR c.stored > c.most))::bigint[]) AS offenders
    FROM checks AS c
    GROUP BY c.measure;
END
$$;

COMMENT ON FUNCTION verify_days(bigint, bigint, boolean, bigint[]) IS 'Compares the daily numbers of targets with their counters and returns.';

-- Sums by tag may be smaller than the sums of their day: some visits have no tags, and tags are added about a second after
-- the other numbers. Newcomers are visitors whose first visit ever had the tag. A day has at most as many newcomers as new
-- visitors. The exception is a late visit, which moves the new visitor, but not the newcomer, to an earlier day. For
-- targets with such a day, the sums over all days up to each day are compared instead.
--
-- Each visit to a site has the tag hour. Days whose hours have fewer visitors than the day are listed under "hours". Sites
-- whose hours have fewer newcomers than uv are listed under "hours newcomers". The caller adds the sums that are not
-- stored yet (VerifyHoursWaiting).
--
-- The range is specified for each table. PostgreSQL does not derive it for a joined table, and would read the whole table
-- for each range.
CREATE FUNCTION verify_tags(low bigint, high bigint, whole boolean, listed bigint[])
RETURNS TABLE (measure text, held bigint, behind bigint, broken bigint, offenders bigint[])
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY
    WITH tagged AS MATERIALIZED (
        SELECT d.page_id, d.day_id, coalesce(t.name, '') AS name, sum(d.pv) AS pv, sum(d.newcomers) AS newcomers,
               count(*) - count(*) FILTER (WHERE t.app_id = p.app_id) AS strange
        FROM tag_days AS d
        LEFT JOIN tags AS t  ON t.id = d.tag_id
        LEFT JOIN pages AS p ON p.id = d.page_id AND p.id BETWEEN low AND high
        WHERE d.page_id BETWEEN low AND high
          AND (whole OR d.page_id = ANY (listed))
        GROUP BY d.page_id, d.day_id, t.name
    ), judged AS MATERIALIZED (
        SELECT t.page_id, t.day_id, t.pv, t.strange, coalesce(d.pv, 0) AS most, d.page_id IS NOT NULL AND t.newcomers <= d.new_visitors AS in_order,
               d.page_id IS NOT NULL AND t.newcomers <= d.new_visitors AND t.pv <= d.pv AND t.strange = 0 AS strictly
        FROM tagged AS t
        LEFT JOIN days AS d ON d.page_id = t.page_id AND d.day_id = t.day_id AND d.page_id BETWEEN low AND high
    ), moved AS MATERIALIZED (
        SELECT t.page_id, t.name, t.day_id, sum(t.newcomers) OVER (PARTITION BY t.page_id, t.name ORDER BY t.day_id) AS newcomers
        FROM tagged AS t
        WHERE t.page_id IN (SELECT j.page_id FROM judged AS j WHERE NOT j.in_order)
    ), dated AS (
        SELECT d.page_id, d.day_id, sum(d.new_visitors) OVER (PARTITION BY d.page_id ORDER BY d.day_id) AS new_visitors
        FROM days AS d
        WHERE d.page_id = ANY (ARRAY(SELECT j.page_id FROM judged AS j WHERE NOT j.in_order))
    ), checks AS (
        SELECT unnest(ARRAY['tags pv', 'tags of app', 'tags newcomers']) AS measure, count(*) AS held, 0 AS page_id, 0 AS day_id, 0 AS stored, 0 AS least, 0 AS most
        FROM judged AS j
        WHERE j.strictly
        UNION ALL
        SELECT m.measure, 1, j.page_id, j.day_id, m.stored, 0, m.most
        FROM judged AS j
        CROSS JOIN LATERAL (
            SELECT unnest(ARRAY['tags pv', 'tags of app']::text[]) AS measure,
                   unnest(ARRAY[j.pv, j.strange]::bigint[])        AS stored,
                   unnest(ARRAY[j.most, 0]::bigint[])              AS most
        ) AS m
        WHERE NOT j.strictly
        UNION ALL
        SELECT 'tags newcomers', 1, m.page_id, m.day_id, m.newcomers, 0, coalesce(d.new_visitors, 0)
        FROM moved AS m
        LEFT JOIN dated AS d ON d.page_id = m.page_id AND d.day_id = m.day_id
        UNION ALL
        SELECT 'hours', 1, b.page_id, b.day_id, sum(b.hours), sum(b.pv), greatest(sum(b.hours), sum(b.pv))
        FROM (
            SELECT d.page_id, d.day_id, 0 AS hours, d.pv
            FROM days AS d
            WHERE d.page_id BETWEEN low AND high
              AND (whole OR d.page_id = ANY (listed))
              AND d.site_id IS NULL
            UNION ALL
            SELECT t.page_id, t.day_id, t.pv, 0
            FROM tagged AS t
            WHERE t.name = 'hour'
        ) AS b
        GROUP BY b.page_id, b.day_id
        UNION ALL
        SELECT 'hours newcomers', 1, b.page_id, 0, sum(b.newcomers), sum(b.uv), greatest(sum(b.newcomers), sum(b.uv))
        FROM (
            SELECT c.page_id, 0 AS newcomers, c.uv
            FROM counters AS c
            JOIN pages AS p ON p.id = c.page_id AND p.id BETWEEN low AND high
            WHERE c.page_id BETWEEN low AND high
              AND (whole OR c.page_id = ANY (listed))
              AND p.site_id IS NULL
            UNION ALL
            SELECT t.page_id, t.newcomers, 0
            FROM tagged AS t
            WHERE t.name = 'hour'
        ) AS b
        GROUP BY b.page_id
    )
    SELECT c.measure::text                                                  AS measure,
           sum(c.held)::bigint                                              AS held,
           sum(c.held)::bigint                                              AS behind,
           count(*) FILTER (WHERE c.stored < c.least OR c.stored > c.most)  AS broken,
           first_offenders((array_agg(ARRAY[c.page_id, c.day_id, 0, c.stored, c.least, c.most])
                         FILTER (WHERE c.stored < c.least OR c.stored > c.most))::bigint[]) AS offenders
    FROM checks AS c
    GROUP BY c.measure;
END
$$;

COMMENT ON FUNCTION verify_tags(bigint, bigint, boolean, bigint[]) IS 'Compares the sums by tag with the sums of their day.';

-- The stored sums by tag may be greater than the rows show: rows of erased visitors are deleted, and a row whose tags are
-- null may have had any tag. Sums that are not stored yet are missing. They are listed with the id of their tag in place
-- of a previous day. Each day is looked up separately, because a site may have far fewer rows than all pages of a range.
--
-- A late visit may move the first day of a visitor to an earlier day. This moves the new visitor, but not the newcomer (a
-- visitor whose first visit ever had the tag). On days that no such move has touched, the newcomers are the visitors
-- without a previous day. A day is untouched if new visitors equal the stored newcomers of all hours, both up to this day
-- and up to the day before. These numbers also differ if newcomers of these days are waiting to be stored.
CREATE FUNCTION verify_tag_rows(low bigint, high bigint, whole boolean, listed bigint[], kept_from integer, seed bigint, sampled integer)
RETURNS TABLE (measure text, held bigint, behind bigint, broken bigint, offenders bigint[])
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY
    WITH dated AS MATERIALIZED (
        SELECT d.page_id, d.day_id
        FROM days AS d
        JOIN pages AS p            ON p.id = d.page_id AND p.id BETWEEN low AND high
        LEFT JOIN visits_kept AS k ON k.app_id = p.app_id
        WHERE d.page_id BETWEEN low AND high
          AND (whole OR d.page_id = ANY (listed))
          AND d.site_id IS NULL
          AND d.day_id >= greatest(coalesce(k.from_day, 0), kept_from)
          AND hashint8extended(d.page_id, seed # d.day_id) & 1048575 < sampled
    ), tagged AS (
        SELECT d.page_id, d.day_id, v.tag_id, count(*) AS rows, count(*) FILTER (WHERE v.previous_day = 0) AS new_rows, 0 AS stored, 0 AS newcomers
        FROM dated AS d
        CROSS JOIN LATERAL (
            SELECT unnest(coalesce(w.tags, '{0}')) AS tag_id, w.previous_day
            FROM visits AS w
            WHERE w.page_id = d.page_id
              AND w.day_id = d.day_id
        ) AS v
        GROUP BY d.page_id, d.day_id, v.tag_id
        UNION ALL
        SELECT d.page_id, d.day_id, t.tag_id, 0, 0, t.pv, t.newcomers
        FROM dated AS d
        JOIN tag_days AS t ON t.page_id = d.page_id AND t.day_id = d.day_id
    ), sums AS MATERIALIZED (
        SELECT t.page_id, t.day_id, t.tag_id, sum(t.rows) AS rows, sum(t.new_rows) AS new_rows, sum(t.stored) AS stored, sum(t.newcomers) AS newcomers,
               sum(t.rows) = sum(t.stored) AND sum(t.new_rows) = sum(t.newcomers) AS strictly
        FROM tagged AS t
        GROUP BY t.page_id, t.day_id, t.tag_id
    ), apart AS MATERIALIZED (
        SELECT s.page_id, s.day_id, s.tag_id, s.rows, s.new_rows, s.stored, s.newcomers,
               s.rows + coalesce(u.rows, 0) + e.visitors AS most, s.new_rows + coalesce(u.new_rows, 0) + e.newcomers AS most_newcomers
        FROM sums AS s
        LEFT JOIN sums AS u ON u.page_id = s.page_id AND u.day_id = s.day_id AND u.tag_id = 0
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(o.visitors), 0) AS visitors, coalesce(sum(o.visitors) FILTER (WHERE o.previous_day = 0), 0) AS newcomers
            FROM erased_visits AS o
            WHERE o.page_id = s.page_id
              AND o.day_id = s.day_id
        ) AS e
        WHERE s.tag_id > 0
          AND NOT s.strictly
    ), moved AS (
        SELECT b.page_id, b.day_id, sum(sum(b.new_visitors)) OVER of_page AS up_to, sum(b.new_visitors) AS on_day
        FROM (
            SELECT d.page_id, d.day_id, d.new_visitors
            FROM days AS d
            WHERE d.page_id = ANY (ARRAY(SELECT a.page_id FROM apart AS a))
            UNION ALL
            SELECT t.page_id, t.day_id, -t.newcomers
            FROM tag_days AS t
            JOIN tags AS g ON g.id = t.tag_id AND g.name = 'hour'
            WHERE t.page_id = ANY (ARRAY(SELECT a.page_id FROM apart AS a))
        ) AS b
        GROUP BY b.page_id, b.day_id
        WINDOW of_page AS (PARTITION BY b.page_id ORDER BY b.day_id)
    ), checks AS (
        SELECT unnest(ARRAY['tag rows', 'tag rows new']) AS measure, count(*) AS held, sum(s.rows) AS behind,
               0 AS page_id, 0 AS day_id, 0 AS tag_id, 0 AS stored, 0 AS least, 0 AS most
        FROM sums AS s
        WHERE s.strictly
        UNION ALL
        SELECT 'tag rows', 1, a.rows, a.page_id, a.day_id, a.tag_id, a.stored, a.rows, a.most
        FROM apart AS a
        UNION ALL
        SELECT 'tag rows new', 1, a.rows, a.page_id, a.day_id, a.tag_id, a.newcomers, a.new_rows, a.most_newcomers
        FROM apart AS a
        JOIN moved AS m ON m.page_id = a.page_id AND m.day_id = a.day_id AND m.up_to = 0 AND m.on_day = 0
    )
    SELECT c.measure::text                                                  AS measure,
           sum(c.held)::bigint                                              AS held,
           coalesce(sum(c.behind), 0)::bigint                               AS behind,
           count(*) FILTER (WHERE c.stored < c.least OR c.stored > c.most)  AS broken,
           first_offenders((array_agg(ARRAY[c.page_id, c.day_id, c.tag_id, c.stored, c.least, c.most])
                         FILTER (WHERE c.stored < c.least OR c.stored > c.most))::bigint[]) AS offenders
    FROM checks AS c
    GROUP BY c.measure;
END
$$;

COMMENT ON FUNCTION verify_tag_rows(bigint, bigint, boolean, bigint[], integer, bigint, integer) IS 'Compares sums by tag of sites with the tags in rows of visits, on a sample of the kept days: sampled of 1,048,576 days, chosen by the seed.';

-- Checks only visitors whose visits are no longer kept. verify_sites checks the others, by their visits. Visitors are
-- looked up one by one, because a site may have far more visitors than the pages of a range.
CREATE FUNCTION verify_site_visitors(low bigint, high bigint, whole boolean, listed bigint[], seed bigint, sampled integer)
RETURNS TABLE (measure text, held bigint, behind bigint, broken bigint, offenders bigint[])
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY
    WITH targets AS MATERIALIZED (
        SELECT p.id AS page_id, p.site_id, coalesce(k.from_day, 0) AS from_day
        FROM pages AS p
        JOIN visits_kept AS k ON k.app_id = p.app_id
        WHERE p.id BETWEEN low AND high
          AND (whole OR p.id = ANY (listed))
          AND p.site_id IS NOT NULL
    ), checks AS (
        SELECT v.page_id, count(*) AS rows,
               count(*) FILTER (WHERE NOT EXISTS (SELECT FROM visitors AS s WHERE s.page_id = t.site_id AND s.ip = v.ip)) AS strangers
        FROM visitors AS v
        JOIN targets AS t ON t.page_id = v.page_id AND v.last_day < t.from_day
        WHERE v.page_id BETWEEN low AND high
          AND (whole OR v.page_id = ANY (listed))
          AND EXISTS (SELECT FROM targets)
          AND hashinetextended(v.ip, seed) & 1048575 < sampled
        GROUP BY v.page_id
    )
    SELECT 'site of visitors'                           AS measure,
           coalesce(sum(c.rows), 0)::bigint             AS held,
           coalesce(sum(c.rows), 0)::bigint             AS behind,
           count(*) FILTER (WHERE c.strangers > 0)      AS broken,
           first_offenders((array_agg(ARRAY[c.page_id, 0, 0, c.strangers, 0, 0])
                         FILTER (WHERE c.strangers > 0))::bigint[]) AS offenders
    FROM checks AS c;
END
$$;

COMMENT ON FUNCTION verify_site_visitors(bigint, bigint, boolean, bigint[], bigint, integer) IS 'Finds visitors of pages who are missing at the site, among visitors whose last day is before the kept days. Checks a sample of them: sampled of 1,048,576 visitors, chosen by the seed.';

-- Erased visitors have no rows, but are counted. For pages (deleted), all previous days are 0, and there are no
-- returns.
--
-- The visits of a visitor to a target form a chain. The chain starts on the visitor's first day, and ends on the visitor's
-- last day. From each day, it leads to the visit that has this day as its previous day. So the rows of visits agree with
-- the rows of visitors if two sets of pairs are equal:
--   - The first set has (visitor, day) of each visit, and (visitor, -day) of each visit without a previous day.
--   - The second set has (visitor, previous day) of each visit with one, and (visitor, last day) and (visitor, -first day)
--     of each visitor.
-- No pair is in the first set twice. So the sets are equal if they have the same size and the XOR of the 64-bit hashes
-- of all pairs is 0. Days whose rows are not kept are left out. Targets whose sets differ, and pages (deleted), are
-- listed under "chains", for verify_visitors.
CREATE FUNCTION verify_rows(low bigint, high bigint, whole boolean, listed bigint[], kept_from integer)
RETURNS TABLE (measure text, held bigint, behind bigint, broken bigint, offenders bigint[])
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY
    WITH targets AS MATERIALIZED (
        SELECT p.id AS page_id,
               greatest(coalesce(k.from_day, 0), 1) AS from_day,
               p.site_id IS NOT NULL AND p.uri LIKE '%/(deleted)' AS deleted
        FROM pages AS p
        LEFT JOIN visits_kept AS k ON k.app_id = p.app_id
        WHERE p.id BETWEEN low AND high
          AND (whole OR p.id = ANY (listed))
    ), visited AS MATERIALIZED (
        SELECT v.page_id, v.day_id, v.previous_day, count(*)::integer AS n,
               bit_xor(hashinetextended(v.ip, v.day_id)) AS came,
               bit_xor(hashinetextended(v.ip, CASE v.previous_day WHEN 0 THEN -v.day_id ELSE v.previous_day END)) AS had_come
        FROM visits AS v
        WHERE v.page_id BETWEEN low AND high
          AND (whole OR v.page_id = ANY (listed))
          AND v.day_id >= kept_from
        GROUP BY v.page_id, v.day_id, v.previous_day
    ), known AS MATERIALIZED (
        SELECT v.page_id, v.first_day, count(*)::integer AS n,
               bit_xor(hashinetextended(v.ip, v.last_day) # CASE WHEN v.first_day >= t.from_day THEN hashinetextended(v.ip, -v.first_day) ELSE 0 END) AS who
        FROM visitors AS v
        JOIN targets AS t ON t.page_id = v.page_id AND v.last_day >= t.from_day
        WHERE v.page_id BETWEEN low AND high
          AND (whole OR v.page_id = ANY (listed))
        GROUP BY v.page_id, v.first_day
    ), chains AS MATERIALIZED (
        SELECT l.page_id, sum(l.visits) AS visits, bool_or(l.deleted) OR sum(l.n) <> 0 OR bit_xor(l.who) <> 0 AS broken
        FROM (
            SELECT v.page_id, t.deleted, v.n AS visits,
                   v.n * (1 + (v.previous_day = 0)::integer - (v.previous_day >= t.from_day)::integer) AS n,
                   v.came # CASE WHEN v.previous_day = 0 OR v.previous_day >= t.from_day THEN v.had_come ELSE 0 END AS who
            FROM visited AS v
            JOIN targets AS t ON t.page_id = v.page_id AND v.day_id >= t.from_day
            UNION ALL
            SELECT k.page_id, t.deleted, 0, -k.n * (1 + (k.first_day >= t.from_day)::integer), k.who
            FROM known AS k
            JOIN targets AS t ON t.page_id = k.page_id
        ) AS l
        GROUP BY l.page_id
    ), unchained AS MATERIALIZED (
        SELECT c.page_id
        FROM chains AS c
        WHERE c.broken
        UNION
        -- If the first day of a chain is not kept, the first kept visit has a previous day that is not kept either.
        -- This previous day is the visitor's first day, or a later one.
        SELECT v.page_id
        FROM visits AS v
        JOIN targets AS t ON t.page_id = v.page_id AND v.day_id >= t.from_day AND v.previous_day < t.from_day
        WHERE v.page_id BETWEEN (SELECT min(k.page_id) FROM targets AS k WHERE k.from_day > 1) AND (SELECT max(k.page_id) FROM targets AS k WHERE k.from_day > 1)
          AND v.previous_day > 0
          AND v.day_id >= kept_from
          AND EXISTS (SELECT FROM visitors AS w WHERE w.page_id = v.page_id AND w.ip = v.ip AND w.first_day > v.previous_day)
    ), parts AS (
        -- A sum of 32-bit integers is faster than a sum of 64-bit integers. So all rows of a day are summed as 32-bit
        -- integers, and only the result is a 64-bit integer.
        SELECT v.page_id, v.day_id, v.n AS visits, 0 AS newcomers, 0 AS erased_newcomers, NULL::bigint AS pv, NULL::bigint AS new_visitors, 0 AS erased, 0 AS sketches
        FROM visited AS v
        UNION ALL
        SELECT k.page_id, k.first_day, 0, k.n, 0, NULL, NULL, 0, 0
        FROM known AS k
        UNION ALL
        SELECT d.page_id, d.day_id, 0, 0, 0, d.pv, d.new_visitors, 0, 0
        FROM days AS d
        WHERE d.page_id BETWEEN low AND high
          AND (whole OR d.page_id = ANY (listed))
          AND d.day_id >= kept_from
        UNION ALL
        SELECT e.page_id, e.day_id, 0, 0, e.visitors::integer * (e.previous_day = 0)::integer, NULL, NULL, e.visitors::integer, 0
        FROM erased_visits AS e
        WHERE e.page_id BETWEEN low AND high
          AND (whole OR e.page_id = ANY (listed))
        UNION ALL
        SELECT s.page_id, s.day_id, 0, 0, 0, NULL, NULL, 0, 1
        FROM sketches AS s
        WHERE s.page_id BETWEEN low AND high
          AND (whole OR s.page_id = ANY (listed))
          AND s.day_id >= kept_from
    ), daily AS (
        SELECT o.page_id, o.day_id,
               sum(o.visits) AS visits, sum(o.newcomers) AS newcomers, sum(o.erased_newcomers) AS erased_newcomers,
               coalesce(max(o.pv), 0) AS pv, coalesce(max(o.new_visitors), 0) AS new_visitors, sum(o.erased) AS erased, max(o.sketches) AS sketches
        FROM parts AS o
        GROUP BY o.page_id, o.day_id
    ), judged AS MATERIALIZED (
        SELECT d.page_id, d.day_id, d.visits, d.newcomers + d.erased_newcomers AS newcomers, d.pv, d.new_visitors, d.erased, t.deleted, k.has_sketch,
               d.pv = d.visits + d.erased
                   AND d.new_visitors = d.newcomers + d.erased_newcomers
                   AND k.has_sketch
                   AND NOT t.deleted AS strictly
        FROM daily AS d
        JOIN targets AS t          ON t.page_id = d.page_id AND d.day_id >= t.from_day
        LEFT JOIN closed_days AS c ON c.day_id = d.day_id
        CROSS JOIN LATERAL (SELECT c.day_id IS NULL OR d.visits = 0 OR d.sketches > 0 AS has_sketch) AS k -- true if no sketch is needed
    ), pairs AS (
        SELECT b.page_id, b.day_id, b.previous_day, sum(b.visits) AS visits, sum(b.stored) AS stored
        FROM (
            SELECT v.page_id, v.day_id, v.previous_day, v.n AS visits, 0::bigint AS stored
            FROM visited AS v
            WHERE v.previous_day > 0
            UNION ALL
            SELECT e.page_id, e.day_id, e.previous_day, e.visitors::integer, 0
            FROM erased_visits AS e
            WHERE e.page_id BETWEEN low AND high
              AND (whole OR e.page_id = ANY (listed))
              AND e.previous_day > 0
            UNION ALL
            SELECT r.page_id, r.day_id, r.previous_day, 0, r.visitors
            FROM returns AS r
            WHERE r.page_id BETWEEN low AND high
              AND (whole OR r.page_id = ANY (listed))
              AND r.day_id >= kept_from
        ) AS b
        JOIN targets AS t ON t.page_id = b.page_id AND b.day_id >= t.from_day
        GROUP BY b.page_id, b.day_id, b.previous_day
    ), checks AS (
        SELECT m.measure, f.held, m.behind, 0 AS page_id, 0 AS day_id, 0 AS previous_day, 0 AS stored, 0 AS least, 0 AS most
        FROM (SELECT count(*) AS held, sum(j.visits) AS visits, sum(j.erased) AS erased FROM judged AS j WHERE j.strictly) AS f
        CROSS JOIN LATERAL (
            SELECT unnest(ARRAY['rows pv', 'rows erased', 'rows new', 'sketches']::text[]) AS measure,
                   unnest(ARRAY[f.visits, f.erased, f.held, f.held]::bigint[]) AS behind
        ) AS m
        UNION ALL
        SELECT m.measure, 1, m.behind, j.page_id, j.day_id, 0, m.stored, m.least, m.most
        FROM judged AS j
        CROSS JOIN LATERAL (
            SELECT unnest(ARRAY['rows pv', 'rows erased', 'rows new', 'sketches']::text[]) AS measure,
                   unnest(ARRAY[j.visits, j.erased, 1, 1]::bigint[]) AS behind,
                   unnest(ARRAY[j.pv, j.erased, j.new_visitors, j.has_sketch::integer]::bigint[]) AS stored,
                   unnest(ARRAY[j.visits + j.erased, j.erased, CASE WHEN j.deleted THEN 0 ELSE j.newcomers END, 1]::bigint[]) AS least,
                   unnest(ARRAY[j.visits + j.erased, j.erased, CASE WHEN j.deleted THEN 0 ELSE j.newcomers END, 1]::bigint[]) AS most
        ) AS m
        WHERE NOT j.strictly
        UNION ALL
        SELECT 'visitors of rows', coalesce(sum(c.visits), 0), 0, 0, 0, 0, 0, 0, 0
        FROM chains AS c
        WHERE c.page_id NOT IN (SELECT u.page_id FROM unchained AS u)
        UNION ALL
        SELECT 'chains', 0, 0, u.page_id, 0, 0, 1, 0, 0
        FROM unchained AS u
        UNION ALL
        SELECT 'page of rows', 1, v.n, v.page_id, v.day_id, 0, v.n, 0, 0
        FROM visited AS v
        WHERE NOT EXISTS (SELECT FROM targets AS t WHERE t.page_id = v.page_id)
        UNION ALL
        SELECT 'returns', count(*), count(*), 0, 0, 0, 0, 0, 0
        FROM pairs AS r
        WHERE r.stored = r.visits
        UNION ALL
        SELECT 'returns', 1, 1, r.page_id, r.day_id, r.previous_day, r.stored, r.visits, r.visits
        FROM pairs AS r
        WHERE r.stored <> r.visits
    )
    SELECT c.measure::text                                                  AS measure,
           sum(c.held)::bigint                                              AS held,
           coalesce(sum(c.behind), 0)::bigint                               AS behind,
           count(*) FILTER (WHERE c.stored < c.least OR c.stored > c.most)  AS broken,
           first_offenders((array_agg(ARRAY[c.page_id, c.day_id, c.previous_day, c.stored, c.least, c.most])
                         FILTER (WHERE c.stored < c.least OR c.stored > c.most))::bigint[]) AS offenders
    FROM checks AS c
    GROUP BY c.measure;
END
$$;

COMMENT ON FUNCTION verify_rows(bigint, bigint, boolean, bigint[], integer) IS 'Compares the daily numbers of kept days with the rows of visits.';

-- Visitors and their visits are read as one list, in which the row of a visitor precedes the rows of their visits. So
-- the visitor of each visit, and the visit before it, are found without a look-up. held and behind count rows of
-- visits.
CREATE FUNCTION verify_visitors(listed bigint[], kept_from integer)
RETURNS TABLE (measure text, held bigint, behind bigint, broken bigint, offenders bigint[])
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY
    WITH targets AS MATERIALIZED (
        SELECT p.id AS page_id,
               greatest(coalesce(k.from_day, 0), 1) AS from_day,
               p.site_id IS NOT NULL AND p.uri LIKE '%/(deleted)' AS deleted
        FROM pages AS p
        LEFT JOIN visits_kept AS k ON k.app_id = p.app_id
        WHERE p.id = ANY (listed)
    ), listed AS (
        SELECT v.page_id, v.ip, 0 AS day_id, -1 AS previous_day, v.first_day::bigint << 32 | v.last_day AS span
        FROM visitors AS v
        JOIN targets AS t ON t.page_id = v.page_id
        WHERE v.page_id = ANY (listed)
          AND v.last_day >= t.from_day
        UNION ALL
        SELECT v.page_id, v.ip, v.day_id, v.previous_day, NULL
        FROM visits AS v
        WHERE v.page_id = ANY (listed)
          AND v.day_id >= kept_from
    ), in_order AS (
        SELECT l.page_id, l.day_id, l.previous_day,
               first_value(l.span) OVER visitor AS span,  -- the visitor's first and last day
               lag(l.day_id) OVER visitor       AS before -- the day of the row before
        FROM listed AS l
        WINDOW visitor AS (PARTITION BY l.ip, l.page_id ORDER BY l.day_id)
    ), grouped AS MATERIALIZED (
        -- Rows of visitors have day 0, and are counted under the visitor's first day. A visit is wrong if its previous
        -- day is not the day of the row before it. If the visit before is not on a kept day, every previous day from
        -- the visitor's first day on is right.
        SELECT i.page_id,
               CASE WHEN i.day_id = 0 THEN i.span >> 32 ELSE i.day_id END            AS day_id,
               count(*) FILTER (WHERE i.day_id = 0)                                  AS newcomers,
               count(*) FILTER (WHERE i.day_id > 0)                                  AS visits,
               count(*) FILTER (WHERE i.day_id = i.span >> 32)                       AS firsts,
               count(*) FILTER (WHERE i.day_id = i.span & 4294967295)                AS lasts,
               count(*) FILTER (WHERE i.day_id > 0 AND (i.span IS NULL OR i.day_id NOT BETWEEN i.span >> 32 AND i.span & 4294967295)) AS odd,
               count(*) FILTER (WHERE i.day_id > 0 AND NOT CASE
                                                               WHEN i.before >= t.from_day     THEN i.previous_day = i.before
                                                               WHEN i.day_id = i.span >> 32    THEN i.previous_day = 0
                                                               ELSE i.previous_day >= i.span >> 32
                                                           END)                      AS astray
        FROM in_order AS i
        JOIN targets AS t ON t.page_id = i.page_id
        GROUP BY 1, 2
    ), judged AS MATERIALIZED (
        SELECT g.*, t.deleted, g.firsts = g.newcomers AND g.odd = 0 AND g.astray = 0 AS strictly
        FROM grouped AS g
        JOIN targets AS t ON t.page_id = g.page_id AND g.day_id >= t.from_day
    ), checks AS (
        SELECT unnest(ARRAY['rows of first days', 'visitors of rows', 'previous days']) AS measure,
               coalesce(sum(j.visits), 0) AS held, 0 AS page_id, 0 AS day_id, 0 AS stored, 0 AS should
        FROM judged AS j
        WHERE j.strictly
        UNION ALL
        SELECT m.measure, j.visits, j.page_id, j.day_id, m.stored, m.should
        FROM judged AS j
        CROSS JOIN LATERAL (
            SELECT unnest(ARRAY['rows of first days', 'visitors of rows', 'previous days']::text[]) AS measure,
                   unnest(ARRAY[j.firsts, j.odd, CASE WHEN j.deleted THEN 0 ELSE j.astray END]::bigint[]) AS stored,
                   unnest(ARRAY[j.newcomers, 0, 0]::bigint[]) AS should
        ) AS m
        WHERE NOT j.strictly
        UNION ALL
        SELECT 'rows of last days', sum(g.visits), g.page_id, 0, sum(g.lasts), sum(g.newcomers)
        FROM grouped AS g
        GROUP BY g.page_id
    )
    SELECT c.measure::text                              AS measure,
           sum(c.held)::bigint                          AS held,
           sum(c.held)::bigint                          AS behind,
           count(*) FILTER (WHERE c.stored <> c.should) AS broken,
           first_offenders((array_agg(ARRAY[c.page_id, c.day_id, 0, c.stored, c.should, c.should])
                         FILTER (WHERE c.stored <> c.should))::bigint[]) AS offenders
    FROM checks AS c
    GROUP BY c.measure;
END
$$;

COMMENT ON FUNCTION verify_visitors(bigint[], integer) IS 'Compares each visitor of some targets with their visits on kept days.';

-- The registers of erased visitors stay in a sketch. So for each erased visitor, one register may be too high. Missing
-- sketches are found by verify_rows. held counts sketches, and behind counts visits.
CREATE FUNCTION verify_sketches(low bigint, high bigint, whole boolean, listed bigint[], kept_from integer, seed bigint, sampled integer)
RETURNS TABLE (measure text, held bigint, behind bigint, broken bigint, offenders bigint[])
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY
    WITH targets AS MATERIALIZED (
        SELECT p.id AS page_id, greatest(coalesce(k.from_day, 0), 1) AS from_day
        FROM pages AS p
        LEFT JOIN visits_kept AS k ON k.app_id = p.app_id
        WHERE p.id BETWEEN low AND high
          AND (whole OR p.id = ANY (listed))
    ), hashes AS MATERIALIZED (
        SELECT v.page_id, v.day_id, sha256(inet_send(v.ip)) AS hash
        FROM visits AS v
        JOIN targets AS t     ON t.page_id = v.page_id AND v.day_id >= t.from_day
        JOIN closed_days AS c ON c.day_id = v.day_id
        WHERE v.page_id BETWEEN low AND high
          AND v.day_id >= kept_from
          AND hashint8extended(v.page_id, seed # v.day_id) & 1048575 < sampled
    ), entries AS MATERIALIZED (
        SELECT h.page_id, h.day_id, sketch_entry(h.hash) AS entry
        FROM hashes AS h
    ), highest AS (
        SELECT e.page_id, e.day_id, max(e.entry) AS entry, count(*) AS visits
        FROM entries AS e
        GROUP BY e.page_id, e.day_id, e.entry / 64
    ), made AS (
        SELECT h.page_id, h.day_id, array_agg(h.entry ORDER BY h.entry) AS entries, sum(h.visits) AS visits
        FROM highest AS h
        GROUP BY h.page_id, h.day_id
    ), compared AS (
        SELECT s.page_id, s.day_id, s.entries, m.entries AS made, coalesce(m.visits, 0) AS visits,
               (SELECT coalesce(sum(e.visitors), 0)
                FROM erased_visits AS e
                WHERE e.page_id = s.page_id
                  AND e.day_id = s.day_id) AS erased
        FROM sketches AS s
        JOIN targets AS t ON t.page_id = s.page_id AND s.day_id >= t.from_day
        LEFT JOIN made AS m ON m.page_id = s.page_id AND m.day_id = s.day_id
        WHERE s.page_id BETWEEN low AND high
          AND s.day_id >= kept_from
          AND hashint8extended(s.page_id, seed # s.day_id) & 1048575 < sampled
    ), checks AS (
        SELECT c.page_id, c.day_id, c.visits,
               CASE
                   WHEN c.entries = c.made THEN 0
                   ELSE greatest((SELECT count(*) FILTER (WHERE m.entry > coalesce(s.entry, -1))
                                             + greatest(count(*) FILTER (WHERE s.entry > coalesce(m.entry, -1)) - c.erased, 0)
                                  FROM unnest(c.entries) AS s (entry)
                                  FULL JOIN unnest(c.made) AS m (entry) ON m.entry / 64 = s.entry / 64),
                                 (c.erased = 0)::integer) -- all registers are right, but not in order
               END AS wrong
        FROM compared AS c
    )
    SELECT 'registers'                                                        AS measure,
           count(*)                                                           AS held,
           coalesce(sum(c.visits), 0)::bigint                                 AS behind,
           count(*) FILTER (WHERE c.wrong > 0)                                AS broken,
           first_offenders((array_agg(ARRAY[c.page_id, c.day_id, 0, c.wrong, 0, 0])
                         FILTER (WHERE c.wrong > 0))::bigint[]) AS offenders
    FROM checks AS c;
END
$$;

COMMENT ON FUNCTION verify_sketches(bigint, bigint, boolean, bigint[], integer, bigint, integer) IS 'Compares sketches with new ones of the same visits, on a sample of the kept days: sampled of 1,048,576 days, chosen by the seed.';

CREATE FUNCTION verify_targets(low bigint, high bigint, whole boolean, listed bigint[], kept_from integer, seed bigint, sampled integer)
RETURNS TABLE (measure text, held bigint, behind bigint, broken bigint, offenders bigint[])
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY SELECT * FROM verify_totals(low, high, whole, listed);
    RETURN QUERY SELECT * FROM verify_days(low, high, whole, listed);
    RETURN QUERY SELECT * FROM verify_tags(low, high, whole, listed);
    RETURN QUERY SELECT * FROM verify_tag_rows(low, high, whole, listed, kept_from, seed, sampled);
    RETURN QUERY SELECT * FROM verify_site_visitors(low, high, whole, listed, seed, sampled);
    RETURN QUERY SELECT * FROM verify_sketches(low, high, whole, listed, kept_from, seed, sampled);
    FOR measure, held, behind, broken, offenders IN SELECT * FROM verify_rows(low, high, whole, listed, kept_from) LOOP
        IF measure = 'chains' THEN
            RETURN QUERY SELECT * FROM verify_visitors(ARRAY(SELECT offenders[i][1] FROM generate_subscripts(offenders, 1) AS i), kept_from);
        ELSE
            RETURN NEXT;
        END IF;
    END LOOP;
END
$$;

COMMENT ON FUNCTION verify_targets(bigint, bigint, boolean, bigint[], integer, bigint, integer) IS 'All checks of a range of targets. kept_from is the first day from which any app keeps visits.';
