-- What `footfall verify` recomputes of sites, and of the lists of first pages. The queries return
-- what those in verify.sql do.

-- name: VerifySiteTotals :many
-- Sites against the sums of their pages.
WITH sums AS (
    SELECT coalesce(p.site_id, p.id) AS site_id,
           sum(c.hot) FILTER (WHERE p.site_id IS NULL) AS hot,
           sum(c.pv)  FILTER (WHERE p.site_id IS NULL) AS pv,
           sum(c.uv)  FILTER (WHERE p.site_id IS NULL) AS uv,
           coalesce(sum(c.hot) FILTER (WHERE p.site_id IS NOT NULL), 0) AS hots,
           coalesce(sum(c.pv)  FILTER (WHERE p.site_id IS NOT NULL), 0) AS pvs,
           coalesce(sum(c.uv)  FILTER (WHERE p.site_id IS NOT NULL), 0) AS uvs,
           coalesce(max(c.pv)  FILTER (WHERE p.site_id IS NOT NULL), 0) AS most_pv,
           coalesce(max(c.uv)  FILTER (WHERE p.site_id IS NOT NULL), 0) AS most_uv
    FROM pages AS p
    LEFT JOIN counters AS c ON c.page_id = p.id
    WHERE @whole::boolean OR coalesce(p.site_id, p.id) = ANY (@sites::bigint[])
    GROUP BY 1
), checks AS (
    SELECT m.measure, s.site_id AS page_id, m.stored, m.least, m.most
    FROM sums AS s
    CROSS JOIN LATERAL (
        SELECT unnest(ARRAY['site hot', 'site pv', 'site uv']::text[]) AS measure,
               unnest(ARRAY[coalesce(s.hot, 0), coalesce(s.pv, 0), coalesce(s.uv, 0)]::bigint[]) AS stored,
               unnest(ARRAY[s.hots, s.most_pv, s.most_uv]::bigint[]) AS least,
               unnest(ARRAY[s.hots, s.pvs, s.uvs]::bigint[]) AS most
    ) AS m
)
SELECT c.measure::text                                                  AS measure,
       count(*)                                                         AS held,
       count(*)                                                         AS behind,
       count(*) FILTER (WHERE c.stored < c.least OR c.stored > c.most)  AS broken,
       coalesce((array_agg(ARRAY[c.page_id, 0, 0, c.stored, c.least, c.most])
                     FILTER (WHERE c.stored < c.least OR c.stored > c.most))[:@n::integer], '{}')::bigint[] AS offenders
FROM checks AS c
GROUP BY c.measure;

-- name: VerifySiteDays :many
-- Days of sites against those of their pages.
WITH sums AS MATERIALIZED (
    SELECT coalesce(d.site_id, d.page_id) AS site_id, d.day_id,
           coalesce(sum(d.hot) FILTER (WHERE d.site_id IS NULL), 0) AS hot,
           coalesce(sum(d.pv)  FILTER (WHERE d.site_id IS NULL), 0) AS pv,
           coalesce(sum(d.hot) FILTER (WHERE d.site_id IS NOT NULL), 0) AS hots,
           coalesce(sum(d.pv)  FILTER (WHERE d.site_id IS NOT NULL), 0) AS pvs,
           coalesce(max(d.pv)  FILTER (WHERE d.site_id IS NOT NULL), 0) AS most_pv
    FROM days AS d
    WHERE @whole::boolean OR coalesce(d.site_id, d.page_id) = ANY (@sites::bigint[])
    GROUP BY 1, 2
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
       coalesce((array_agg(ARRAY[c.page_id, c.day_id, 0, c.stored, c.least, c.most])
                     FILTER (WHERE c.stored < c.least OR c.stored > c.most))[:@n::integer], '{}')::bigint[] AS offenders
FROM checks AS c
GROUP BY c.measure;

-- name: VerifyTops :many
-- The lists of first pages against the daily numbers, made anew: those of some sites, or, where an
-- app is named, those of all its sites together, which stand under site 0; an offender there has
-- the app's id, negative. A list may be missing. It tells how many of a list's places are right.
-- Each number is sorted by itself: all three together take twice as long.
WITH sites AS (
    SELECT p.id
    FROM pages AS p
    WHERE p.site_id IS NULL
      AND (p.app_id = @app::integer OR p.id = ANY (@sites::bigint[]))
), kept AS MATERIALIZED (
    SELECT t.app_id, t.site_id, t.day_id, t.by, t.page_ids, t.numbers
    FROM tops AS t
    WHERE t.app_id = @app AND t.site_id = 0
       OR t.site_id = ANY (@sites)
), dated AS MATERIALIZED (
    SELECT CASE WHEN @app > 0 THEN 0 ELSE d.site_id END AS site_id, d.day_id, d.page_id, d.pv, d.new_visitors, d.hot
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
       coalesce((array_agg(ARRAY[c.page_id, c.day_id, 0, c.stored, c.should, c.should])
                     FILTER (WHERE c.stored <> c.should))[:@n::integer], '{}')::bigint[] AS offenders
FROM checks AS c
GROUP BY c.measure;
