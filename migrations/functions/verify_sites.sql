-- Checks of sites on the days after after_day, up to until_day (see verify_targets.sql). Sites of apps that are being
-- deleted are left out.

CREATE FUNCTION verify_sites(listed bigint[], after_day integer, until_day integer)
RETURNS TABLE (measure text, held bigint, behind bigint, broken bigint, offenders bigint[])
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF after_day = 0 THEN
        RETURN QUERY
        WITH sums AS (
            SELECT p.site_id,
                   sum(c.hot) AS hots, sum(c.pv) AS pvs, sum(c.uv) AS uvs,
                   max(c.pv) AS most_pv, max(c.uv) AS most_uv
            FROM pages AS p
            JOIN counters AS c ON c.page_id = p.id
            WHERE p.site_id = ANY (listed)
            GROUP BY p.site_id
        ), checks AS (
            SELECT m.measure, s.id AS page_id, m.stored, coalesce(m.least, 0) AS least, coalesce(m.most, 0) AS most
            FROM pages AS s
            JOIN apps AS a          ON a.id = s.app_id AND a.deleted_at IS NULL
            LEFT JOIN counters AS c ON c.page_id = s.id
            LEFT JOIN sums AS p     ON p.site_id = s.id
            CROSS JOIN LATERAL (
                SELECT unnest(ARRAY['site hot', 'site pv', 'site uv']::text[]) AS measure,
                       unnest(ARRAY[coalesce(c.hot, 0), coalesce(c.pv, 0), coalesce(c.uv, 0)]::bigint[]) AS stored,
                       unnest(ARRAY[p.hots, p.most_pv, p.most_uv]::bigint[]) AS least,
                       unnest(ARRAY[p.hots, p.pvs, p.uvs]::bigint[]) AS most
            ) AS m
            WHERE s.id = ANY (listed)
        )
        SELECT c.measure::text                                                  AS measure,
               count(*)                                                         AS held,
               count(*)                                                         AS behind,
               count(*) FILTER (WHERE c.stored < c.least OR c.stored > c.most)  AS broken,
               first_offenders((array_agg(ARRAY[c.page_id, 0, 0, c.stored, c.least, c.most])
                             FILTER (WHERE c.stored < c.least OR c.stored > c.most))::bigint[]) AS offenders
        FROM checks AS c
        GROUP BY c.measure;
    END IF;

    RETURN QUERY
    WITH sites AS (
        SELECT s.id
        FROM pages AS s
        JOIN apps AS a ON a.id = s.app_id AND a.deleted_at IS NULL
        WHERE s.id = ANY (listed)
    ), listed AS (
        SELECT d.page_id AS site_id, d.day_id, true AS is_site, d.hot, d.pv
        FROM days AS d
        WHERE d.page_id = ANY (ARRAY(SELECT s.id FROM sites AS s))
          AND d.day_id > after_day
          AND d.day_id <= until_day
        UNION ALL
        SELECT d.site_id, d.day_id, false, d.hot, d.pv
        FROM days AS d
        WHERE d.site_id = ANY (ARRAY(SELECT s.id FROM sites AS s))
          AND d.day_id > after_day
          AND d.day_id <= until_day
    ), sums AS MATERIALIZED (
        SELECT l.site_id, l.day_id,
               coalesce(sum(l.hot) FILTER (WHERE l.is_site), 0) AS hot,
               coalesce(sum(l.pv)  FILTER (WHERE l.is_site), 0) AS pv,
               coalesce(sum(l.hot) FILTER (WHERE NOT l.is_site), 0) AS hots,
               coalesce(sum(l.pv)  FILTER (WHERE NOT l.is_site), 0) AS pvs,
               coalesce(max(l.pv)  FILTER (WHERE NOT l.is_site), 0) AS most_pv
        FROM listed AS l
        GROUP BY l.site_id, l.day_id
    ), checks AS (
        SELECT m.measure, s.site_id AS page_id, s.day_id, m.stored, m.least, m.most
        FROM sums AS s
        CROSS JOIN LATERAL (
            SELECT unnest(ARRAY['site day hot', 'site day pv']::text[]) AS measure,
                   unnest(ARRAY[s.hot, s.pv]::bigint[]) AS stored,
                   unnest(ARRAY[s.hots, s.most_pv]::bigint[]) AS least,
                   unnest(ARRAY[s.hots, s.pvs]::bigint[]) AS most
        ) AS m
    )
    SELECT c.measure::text                                                  AS measure,
           count(*)                                                         AS held,
           count(*)                                                         AS behind,
           count(*) FILTER (WHERE c.stored < c.least OR c.stored > c.most)  AS broken,
           first_offenders((array_agg(ARRAY[c.page_id, c.day_id, 0, c.stored, c.least, c.most])
                         FILTER (WHERE c.stored < c.least OR c.stored > c.most))::bigint[]) AS offenders
    FROM checks AS c
    GROUP BY c.measure;

    -- Finds visitors of pages who have no visit to the site on the same kept day, from the rows of visits. Visitors are
    -- compared by hashes of 64 bits, because grouping these takes half the time of grouping addresses.
    RETURN QUERY
    WITH sites AS (
        SELECT s.id, greatest(coalesce(k.from_day, 0), 1) AS from_day
        FROM pages AS s
        JOIN apps AS a             ON a.id = s.app_id AND a.deleted_at IS NULL
        LEFT JOIN visits_kept AS k ON k.app_id = s.app_id
        WHERE s.id = ANY (listed)
    ), targets AS (
        SELECT s.id AS page_id, s.id AS site_id, s.from_day
        FROM sites AS s
        UNION ALL
        SELECT p.id, p.site_id, s.from_day
        FROM pages AS p
        JOIN sites AS s ON s.id = p.site_id
    ), came AS (
        SELECT t.site_id, v.day_id, count(*) AS rows, bool_or(t.page_id = t.site_id) AS at_site
        FROM visits AS v
        JOIN targets AS t ON t.page_id = v.page_id AND v.day_id >= t.from_day
        WHERE v.day_id > after_day
          AND v.day_id <= until_day
        GROUP BY t.site_id, v.day_id, hashinetextended(v.ip, 0)
    ), checks AS (
        SELECT c.site_id, c.day_id, sum(c.rows - c.at_site::integer) AS rows, count(*) FILTER (WHERE NOT c.at_site) AS strangers
        FROM came AS c
        GROUP BY c.site_id, c.day_id
    )
    SELECT 'site of visits'                          AS measure,
           coalesce(sum(c.rows), 0)::bigint          AS held,
           coalesce(sum(c.rows), 0)::bigint          AS behind,
           count(*) FILTER (WHERE c.strangers > 0)   AS broken,
           first_offenders((array_agg(ARRAY[c.site_id, c.day_id, 0, c.strangers, 0, 0])
                         FILTER (WHERE c.strangers > 0))::bigint[]) AS offenders
    FROM checks AS c;
END
$$;

COMMENT ON FUNCTION verify_sites(bigint[], integer, integer) IS 'Compares the numbers of some sites with those of their pages, on a range of days. Also compares their totals if after_day is 0.';

-- Computes the lists of top pages again and compares them. The lists are those of some sites, or those of a whole app,
-- which are stored under site 0. An offender of a whole app has the app's negated id. A missing list is not wrong. Reports
-- how many places of a list are right. The lists for pv, uv and hot are sorted separately, because sorting all three
-- together takes twice as long.
CREATE FUNCTION verify_tops(only_app integer, listed bigint[], after_day integer, until_day integer)
RETURNS TABLE (measure text, held bigint, behind bigint, broken bigint, offenders bigint[])
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN QUERY
    WITH sites AS (
        SELECT s.id
        FROM pages AS s
        JOIN apps AS a ON a.id = s.app_id AND a.deleted_at IS NULL
        WHERE s.site_id IS NULL
          AND (s.app_id = only_app OR s.id = ANY (listed))
    ), kept AS MATERIALIZED (
        SELECT t.app_id, t.site_id, t.day_id, t.by, t.page_ids, t.numbers
        FROM tops AS t
        JOIN apps AS a ON a.id = t.app_id AND a.deleted_at IS NULL
        WHERE (t.app_id = only_app AND t.site_id = 0 OR t.site_id = ANY (listed))
          AND t.day_id > after_day
          AND t.day_id <= until_day
    ), dated AS MATERIALIZED (
        SELECT CASE WHEN only_app > 0 THEN 0 ELSE d.site_id END AS site_id, d.day_id, d.page_id, d.pv, d.new_visitors, d.hot
        FROM days AS d
        WHERE d.site_id = ANY (ARRAY(SELECT s.id FROM sites AS s))
          AND d.day_id IN (SELECT t.day_id FROM kept AS t)
    ), lists AS (
        SELECT d.site_id, d.day_id, 'pv' AS by,
               (array_agg(d.page_id ORDER BY d.pv DESC, d.page_id))[:1000] AS page_ids,
               (array_agg(d.pv      ORDER BY d.pv DESC, d.page_id))[:1000] AS numbers
        FROM dated AS d
        WHERE d.pv > 0
        GROUP BY d.site_id, d.day_id
        UNION ALL
        SELECT d.site_id, d.day_id, 'uv',
               (array_agg(d.page_id ORDER BY d.new_visitors DESC, d.page_id))[:1000],
               (array_agg(d.new_visitors      ORDER BY d.new_visitors DESC, d.page_id))[:1000]
        FROM dated AS d
        WHERE d.new_visitors > 0
        GROUP BY d.site_id, d.day_id
        UNION ALL
        SELECT d.site_id, d.day_id, 'hot',
               (array_agg(d.page_id ORDER BY d.hot DESC, d.page_id))[:1000],
               (array_agg(d.hot     ORDER BY d.hot DESC, d.page_id))[:1000]
        FROM dated AS d
        WHERE d.hot > 0
        GROUP BY d.site_id, d.day_id
    ), checks AS (
        SELECT 'tops' AS measure, CASE WHEN t.site_id = 0 THEN -t.app_id ELSE t.site_id END AS page_id, t.day_id,
               CASE
                   WHEN t.page_ids = l.page_ids AND t.numbers = l.numbers THEN cardinality(l.page_ids)
                   ELSE least((SELECT count(*)
                               FROM generate_subscripts(t.page_ids, 1) AS s (place)
                               WHERE t.page_ids[s.place] = l.page_ids[s.place]
                                 AND t.numbers[s.place] = l.numbers[s.place]),
                              coalesce(cardinality(l.page_ids), 0) - 1)
               END AS stored,
               coalesce(cardinality(l.page_ids), 0) AS should
        FROM kept AS t
        LEFT JOIN lists AS l ON l.site_id = t.site_id AND l.day_id = t.day_id AND l.by = t.by
    )
    SELECT c.measure::text                              AS measure,
           count(*)                                     AS held,
           count(*)                                     AS behind,
           count(*) FILTER (WHERE c.stored <> c.should) AS broken,
           first_offenders((array_agg(ARRAY[c.page_id, c.day_id, 0, c.stored, c.should, c.should])
                         FILTER (WHERE c.stored <> c.should))::bigint[]) AS offenders
    FROM checks AS c
    GROUP BY c.measure;
END
$$;

COMMENT ON FUNCTION verify_tops(integer, bigint[], integer, integer) IS 'Compares lists of top pages with the daily numbers: those of some sites, or of an app as a whole.';
