-- What `footfall verify` recomputes, all in one snapshot. Tables are read in ranges of targets, so
-- that what has to be sorted fits into memory, and several connections share the work.
--
-- The queries that hold promises return a row for each measure: how many times it was held and how
-- often it was broken, how many rows stand behind it, and up to n offenders as a flat list of six
-- numbers each: target, day, previous day, what is stored, and the least and the most that it may
-- be. A range includes both ends; whole says that all of it is asked for, and not just the targets
-- listed.
--
-- Nearly all rows of the largest tables are right in the strictest sense. They are counted
-- together, and only the others are held against each measure by itself.

-- name: VerifyHold :exec
-- Lets no day of visits be dropped until the transaction ends. It must come before anything that
-- takes the snapshot: a day that went between the two would be missed.
LOCK TABLE visits IN ACCESS SHARE MODE;

-- name: SnapshotExport :one
-- The name by which other transactions may see what this one sees, as long as it runs.
SELECT pg_export_snapshot()::text AS name;

-- name: SnapshotTake :exec
-- Lets this transaction see what the one sees that exported a snapshot. A statement without
-- parameters, the first of its transaction: the name is written into the text.
SET TRANSACTION SNAPSHOT 'snapshot_name';

-- name: VerifySettings :exec
-- Large sorts and hashes in memory, as much time as it takes, and each statement planned for its
-- own range.
SELECT set_config('statement_timeout', '0', true),
       set_config('work_mem', @memory::text, true),
       set_config('plan_cache_mode', 'force_custom_plan', true),
       set_config('jit', 'off', true),
       set_config('max_parallel_workers_per_gather', '0', true);

-- name: VerifyRanges :many
-- The targets asked for, cut into ranges of about so many rows, in order. Those of an app that is
-- being deleted are left out: its rows go step by step.
WITH sites AS (
    SELECT p.id
    FROM pages AS p
    JOIN apps AS a ON a.id = p.app_id
    WHERE p.site_id IS NULL
      AND a.deleted_at IS NULL
      AND (@app::text = '' OR a.name = @app::text)
      AND (hashtextextended(a.name || ' ' || p.uri, @seed::bigint) & 1048575) < @sampled::integer -- of 1,048,576
), chosen AS (
    SELECT p.id, p.site_id IS NULL AS is_site, 1 + coalesce(c.pv, 0) + coalesce(c.uv, 0) AS weight
    FROM pages AS p
    LEFT JOIN counters AS c ON c.page_id = p.id
    WHERE coalesce(p.site_id, p.id) IN (SELECT s.id FROM sites AS s)
), running AS (
    SELECT h.id, h.is_site, h.weight, sum(h.weight) OVER (ORDER BY h.id) - h.weight AS before
    FROM chosen AS h
)
SELECT min(r.id)::bigint      AS low,
       max(r.id)::bigint      AS high,
       sum(r.weight)::bigint  AS weight,
       array_agg(r.id)::bigint[] AS targets,
       coalesce(array_agg(r.id) FILTER (WHERE r.is_site), '{}')::bigint[] AS sites
FROM running AS r
GROUP BY div(r.before, @size::bigint)
ORDER BY div(r.before, @size::bigint);

-- name: VerifyScope :one
-- The first day of which any app keeps its visits (0: all are kept), and how many apps are being
-- deleted.
SELECT coalesce(min(coalesce(k.from_day, 0)) FILTER (WHERE a.deleted_at IS NULL), 0)::integer AS from_day,
       count(*) FILTER (WHERE a.deleted_at IS NOT NULL) AS being_deleted
FROM apps AS a
LEFT JOIN visits_kept AS k ON k.app_id = a.id;

-- name: VerifyNames :many
-- What targets are called, and apps as a whole: those have their id, negative.
SELECT p.id, a.name AS app, p.uri
FROM pages AS p
JOIN apps AS a ON a.id = p.app_id
WHERE p.id = ANY (@targets::bigint[])
UNION ALL
SELECT -a.id, a.name, '(all sites)'
FROM apps AS a
WHERE -a.id = ANY (@targets);

-- name: VerifyApps :many
-- The apps of which all sites are asked for: all, or the one with this name.
SELECT a.id
FROM apps AS a
WHERE @app::text IN ('', a.name)
  AND a.deleted_at IS NULL
ORDER BY a.id;

-- name: VerifyTotals :many
-- Counters against visitors. Ranks are 1..uv when there are uv of them, none is above uv and none
-- is there twice, which the sums of them and of their squares tell; only where those are wrong each
-- is looked at.
WITH parts AS (
    SELECT p.id AS page_id, 1 AS pages, 0 AS hot, 0 AS pv, 0 AS uv, 0 AS visitors, 0 AS erased, 0 AS last_rank, 0 AS ranks, 0 AS squares
    FROM pages AS p
    WHERE p.id BETWEEN @low::bigint AND @high::bigint
      AND (@whole::boolean OR p.id = ANY (@targets::bigint[]))
    UNION ALL
    SELECT c.page_id, 0, c.hot, c.pv, c.uv, 0, 0, 0, 0, 0
    FROM counters AS c
    WHERE c.page_id BETWEEN @low AND @high
      AND (@whole OR c.page_id = ANY (@targets))
    UNION ALL
    SELECT v.page_id, 0, 0, 0, 0, count(*), 0, max(v.rank), sum(v.rank), sum(v.rank * v.rank)
    FROM visitors AS v
    WHERE v.page_id BETWEEN @low AND @high
      AND (@whole OR v.page_id = ANY (@targets))
    GROUP BY v.page_id
    UNION ALL
    SELECT e.page_id, 0, 0, 0, 0, 0, count(*), max(e.rank), sum(e.rank), sum(e.rank * e.rank)
    FROM erased_visitors AS e
    WHERE e.page_id BETWEEN @low AND @high
      AND (@whole OR e.page_id = ANY (@targets))
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
                     FROM (SELECT v.page_id, v.rank FROM visitors AS v UNION ALL SELECT e.page_id, e.rank FROM erased_visitors AS e) AS r
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
       coalesce((array_agg(ARRAY[c.page_id, 0, 0, c.stored, c.least, c.most])
                     FILTER (WHERE c.stored < c.least OR c.stored > c.most))[:@n::integer], '{}')::bigint[] AS offenders
FROM checks AS c
GROUP BY c.measure;

-- name: VerifyDays :many
-- Daily numbers against counters. What is not new on a day has returned, but in sums of deleted
-- pages, of which neither is told: unknown is what is left.
WITH back AS (
    SELECT r.page_id, r.day_id, sum(r.visitors)::bigint AS visitors
    FROM returns AS r
    WHERE r.page_id BETWEEN @low::bigint AND @high::bigint
      AND (@whole::boolean OR r.page_id = ANY (@targets::bigint[]))
    GROUP BY r.page_id, r.day_id
), dated AS (
    SELECT d.page_id, d.site_id, d.day_id, d.hot, d.pv, d.new_visitors
    FROM days AS d
    WHERE d.page_id BETWEEN @low AND @high
      AND (@whole OR d.page_id = ANY (@targets))
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
    WHERE p.id BETWEEN @low AND @high
      AND (@whole OR p.id = ANY (@targets))
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
    LEFT JOIN counters AS c ON c.page_id = t.page_id
    CROSS JOIN LATERAL (
        SELECT unnest(ARRAY['days hot', 'days pv', 'new visitors']::text[]) AS measure,
               unnest(ARRAY[coalesce(s.hot, 0), coalesce(s.pv, 0), coalesce(s.new_visitors, 0)]::bigint[]) AS stored,
               unnest(ARRAY[coalesce(c.hot, 0), coalesce(c.pv, 0), coalesce(c.uv, 0) - coalesce(s.unknown, 0)]::bigint[]) AS least,
               unnest(ARRAY[coalesce(c.hot, 0), coalesce(c.pv, 0), coalesce(c.uv, 0)]::bigint[]) AS most
    ) AS m
    UNION ALL
    SELECT unnest(ARRAY['told', 'page of days', 'site of days']), count(*), 0, 0, 0, 0, 0
    FROM judged AS j
    WHERE j.strictly
    UNION ALL
    SELECT m.measure, 1, j.page_id, j.day_id, m.stored, m.least, m.most
    FROM judged AS j
    CROSS JOIN LATERAL (
        SELECT unnest(ARRAY['told', 'page of days', 'site of days']::text[]) AS measure,
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
       coalesce((array_agg(ARRAY[c.page_id, c.day_id, 0, c.stored, c.least, c.most])
                     FILTER (WHERE c.stored < c.least OR c.stored > c.most))[:@n::integer], '{}')::bigint[] AS offenders
FROM checks AS c
GROUP BY c.measure;

-- name: VerifyRows :many
-- Kept days against their rows. Visitors and their visits are read as one list, in which a visitor
-- comes before their days: so each visit finds its visitor, and the day before, without a look-up.
-- Erased visitors have no rows, but are counted by day and previous day. In sums of deleted pages
-- all previous days are 0, and there are no returns.
WITH targets AS MATERIALIZED (
    SELECT p.id AS page_id,
           greatest(coalesce(k.from_day, 0), 1) AS from_day,
           p.site_id IS NOT NULL AND p.uri LIKE '%/(deleted)' AS deleted
    FROM pages AS p
    LEFT JOIN visits_kept AS k ON k.app_id = p.app_id
    WHERE p.id BETWEEN @low::bigint AND @high::bigint
      AND (@whole::boolean OR p.id = ANY (@targets::bigint[]))
), listed AS (
    SELECT v.page_id, v.ip, 0 AS day_id, -1 AS previous_day, v.first_day::bigint << 32 | v.last_day AS span
    FROM visitors AS v
    JOIN targets AS t ON t.page_id = v.page_id
    WHERE v.page_id BETWEEN @low AND @high
      AND (@whole OR v.page_id = ANY (@targets))
      AND v.last_day >= t.from_day
    UNION ALL
    SELECT v.page_id, v.ip, v.day_id, v.previous_day, NULL
    FROM visits AS v
    WHERE v.page_id BETWEEN @low AND @high
      AND (@whole OR v.page_id = ANY (@targets))
      AND v.day_id >= @from_day::integer
), in_order AS (
    SELECT l.page_id, l.day_id, l.previous_day,
           first_value(l.span) OVER visitor AS span,  -- the visitor's first and last day
           lag(l.day_id) OVER visitor       AS before -- the day of the row before
    FROM listed AS l
    WINDOW visitor AS (PARTITION BY l.ip, l.page_id ORDER BY l.day_id)
), grouped AS MATERIALIZED (
    -- Rows of visitors are told from those of visits by the previous day -1, and stand under their
    -- first day. A visit is astray whose previous day is another one than that of the row before;
    -- where rows of that day are not kept, it may be any from the first day on.
    SELECT i.page_id,
           CASE WHEN i.day_id = 0 THEN i.span >> 32 ELSE i.day_id END            AS day_id,
           i.previous_day,
           count(*)                                                              AS n,
           count(*) FILTER (WHERE i.day_id = i.span >> 32)                       AS firsts,
           count(*) FILTER (WHERE i.day_id = i.span & 4294967295)                AS lasts,
           count(*) FILTER (WHERE i.day_id > 0 AND (i.span IS NULL OR i.day_id NOT BETWEEN i.span >> 32 AND i.span & 4294967295)) AS odd,
           count(*) FILTER (WHERE i.day_id > 0 AND NOT CASE
                                                           WHEN i.before >= t.from_day     THEN i.previous_day = i.before
                                                           WHEN i.day_id = i.span >> 32    THEN i.previous_day = 0
                                                           ELSE i.previous_day >= i.span >> 32
                                                       END)                      AS astray
    FROM in_order AS i
    LEFT JOIN targets AS t ON t.page_id = i.page_id
    GROUP BY 1, 2, 3
), parts AS (
    SELECT g.page_id, g.day_id,
           g.n * (g.previous_day >= 0)::integer AS visits,
           g.n * (g.previous_day < 0)::integer  AS newcomers,
           0 AS erased_newcomers,
           g.firsts, g.odd, g.astray, 0 AS pv, 0 AS new_visitors, 0 AS erased
    FROM grouped AS g
    UNION ALL
    SELECT d.page_id, d.day_id, 0, 0, 0, 0, 0, 0, d.pv, d.new_visitors, 0
    FROM days AS d
    WHERE d.page_id BETWEEN @low AND @high
      AND (@whole OR d.page_id = ANY (@targets))
      AND d.day_id >= @from_day
    UNION ALL
    SELECT e.page_id, e.day_id, 0, 0, e.visitors * (e.previous_day = 0)::integer, 0, 0, 0, 0, 0, e.visitors
    FROM erased_visits AS e
    WHERE e.page_id BETWEEN @low AND @high
      AND (@whole OR e.page_id = ANY (@targets))
), daily AS (
    SELECT o.page_id, o.day_id,
           sum(o.visits)::bigint AS visits, sum(o.newcomers)::bigint AS newcomers, sum(o.erased_newcomers)::bigint AS erased_newcomers,
           sum(o.firsts)::bigint AS firsts, sum(o.odd)::bigint AS odd, sum(o.astray)::bigint AS astray,
           sum(o.pv)::bigint AS pv, sum(o.new_visitors)::bigint AS new_visitors, sum(o.erased)::bigint AS erased
    FROM parts AS o
    GROUP BY o.page_id, o.day_id
), pairs AS (
    SELECT b.page_id, b.day_id, b.previous_day, sum(b.visits)::bigint AS visits, sum(b.stored)::bigint AS stored
    FROM (
        SELECT g.page_id, g.day_id, g.previous_day, g.n AS visits, 0 AS stored
        FROM grouped AS g
        WHERE g.previous_day > 0
        UNION ALL
        SELECT e.page_id, e.day_id, e.previous_day, e.visitors, 0
        FROM erased_visits AS e
        WHERE e.page_id BETWEEN @low AND @high
          AND (@whole OR e.page_id = ANY (@targets))
          AND e.previous_day > 0
        UNION ALL
        SELECT r.page_id, r.day_id, r.previous_day, 0, r.visitors
        FROM returns AS r
        WHERE r.page_id BETWEEN @low AND @high
          AND (@whole OR r.page_id = ANY (@targets))
          AND r.day_id >= @from_day
    ) AS b
    JOIN targets AS t ON t.page_id = b.page_id AND b.day_id >= t.from_day
    GROUP BY b.page_id, b.day_id, b.previous_day
), judged AS MATERIALIZED (
    SELECT d.*, t.deleted, k.has_sketch,
           d.pv = d.visits + d.erased
               AND d.new_visitors = d.newcomers + d.erased_newcomers
               AND d.firsts = d.newcomers
               AND d.odd = 0
               AND d.astray = 0
               AND k.has_sketch
               AND NOT t.deleted AS strictly
    FROM daily AS d
    JOIN targets AS t          ON t.page_id = d.page_id AND d.day_id >= t.from_day
    LEFT JOIN sketches AS s    ON s.page_id = d.page_id AND s.day_id = d.day_id
    LEFT JOIN closed_days AS c ON c.day_id = d.day_id
    CROSS JOIN LATERAL (SELECT c.day_id IS NULL OR d.visits = 0 OR s.page_id IS NOT NULL AS has_sketch) AS k -- or needs none
), checks AS (
    SELECT m.measure, f.held, m.behind, 0 AS page_id, 0 AS day_id, 0 AS previous_day, 0 AS stored, 0 AS least, 0 AS most
    FROM (SELECT count(*) AS held, sum(j.visits) AS visits, sum(j.erased) AS erased FROM judged AS j WHERE j.strictly) AS f
    CROSS JOIN LATERAL (
        SELECT unnest(ARRAY['rows pv', 'rows erased', 'rows new', 'rows of first days', 'visitors of rows', 'previous days', 'sketches']::text[]) AS measure,
               unnest(ARRAY[f.visits, f.erased, f.held, f.held, f.held, f.held, f.held]::bigint[]) AS behind
    ) AS m
    UNION ALL
    SELECT m.measure, 1, m.behind, j.page_id, j.day_id, 0, m.stored, m.least, m.most
    FROM judged AS j
    CROSS JOIN LATERAL (
        SELECT unnest(ARRAY['rows pv', 'rows erased', 'rows new', 'rows of first days', 'visitors of rows', 'previous days', 'sketches']::text[]) AS measure,
               unnest(ARRAY[j.visits, j.erased, 1, 1, 1, 1, 1]::bigint[]) AS behind,
               unnest(ARRAY[j.pv, j.erased, j.new_visitors, j.firsts, j.odd, CASE WHEN j.deleted THEN 0 ELSE j.astray END, j.has_sketch::integer]::bigint[]) AS stored,
               unnest(ARRAY[j.visits + j.erased, j.erased, CASE WHEN j.deleted THEN 0 ELSE j.newcomers + j.erased_newcomers END, j.newcomers, 0, 0, 1]::bigint[]) AS least,
               unnest(ARRAY[j.visits + j.erased, j.erased, CASE WHEN j.deleted THEN 0 ELSE j.newcomers + j.erased_newcomers END, j.newcomers, 0, 0, 1]::bigint[]) AS most
    ) AS m
    WHERE NOT j.strictly
    UNION ALL
    SELECT 'rows of last days', 1, 1, g.page_id, 0, 0, sum(g.lasts),
           sum(g.n) FILTER (WHERE g.previous_day < 0),
           sum(g.n) FILTER (WHERE g.previous_day < 0)
    FROM grouped AS g
    JOIN targets AS t ON t.page_id = g.page_id
    GROUP BY g.page_id
    UNION ALL
    SELECT 'page of rows', 1, g.n, g.page_id, g.day_id, 0, g.n, 0, 0
    FROM grouped AS g
    WHERE NOT EXISTS (SELECT FROM targets AS t WHERE t.page_id = g.page_id)
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
       coalesce((array_agg(ARRAY[c.page_id, c.day_id, c.previous_day, c.stored, c.least, c.most])
                     FILTER (WHERE c.stored < c.least OR c.stored > c.most))[:@n::integer], '{}')::bigint[] AS offenders
FROM checks AS c
GROUP BY c.measure;
