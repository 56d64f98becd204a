-- How `footfall verify` divides the tables into pieces. Each piece is checked in its own snapshot
-- (functions/verify_targets.sql).

-- name: Prove :many
-- The results of the checks whose names are in @checks. Each check ignores the arguments of the other checks.
SELECT t.measure::text AS measure, t.held::bigint AS held, t.behind::bigint AS behind, t.broken::bigint AS broken, t.offenders::bigint[] AS offenders
FROM verify_targets(@low::bigint, @high::bigint, @whole::boolean, @listed::bigint[], @from_day::integer, @seed::bigint, @sampled::integer) AS t
WHERE 'targets' = ANY (@checks::text[])
UNION ALL
SELECT a.measure, a.held, a.behind, a.broken, a.offenders
FROM verify_apps(@app::text) AS a
WHERE 'apps' = ANY (@checks)
UNION ALL
SELECT s.measure, s.held, s.behind, s.broken, s.offenders
FROM verify_sites(@listed, @after_day::integer, @until_day::integer) AS s
WHERE 'sites' = ANY (@checks)
UNION ALL
SELECT o.measure, o.held, o.behind, o.broken, o.offenders
FROM verify_tops(@only_app::integer, @listed, @after_day, @until_day) AS o
WHERE 'tops' = ANY (@checks)
UNION ALL
SELECT p.measure, p.held, p.behind, p.broken, p.offenders
FROM verify_people(@app, @period::smallint, @after_app::integer, @after_id::inet, @until_app::integer, @until_id::inet) AS p
WHERE 'people' = ANY (@checks)
UNION ALL
SELECT l.measure, l.held, l.behind, l.broken, l.offenders
FROM verify_lines(@app, @after_app, @after_hour::integer, @until_app, @until_hour::integer) AS l
WHERE 'lines' = ANY (@checks)
UNION ALL
SELECT d.measure, d.held, d.behind, d.broken, d.offenders
FROM verify_line_days(@app) AS d
WHERE 'line days' = ANY (@checks);

-- name: VerifyScope :one
-- The first day for which any app keeps its visits (0: all days), and the number of apps that are being
-- deleted.
SELECT coalesce(min(coalesce(k.from_day, 0)) FILTER (WHERE a.deleted_at IS NULL), 0)::integer AS from_day,
       count(*) FILTER (WHERE a.deleted_at IS NOT NULL) AS being_deleted
FROM apps AS a
LEFT JOIN visits_kept AS k ON k.app_id = a.id;

-- name: VerifyWeight :one
-- The approximate number of rows about the pages and sites of an app, or of all apps if the name is empty.
SELECT coalesce(sum(1 + coalesce(c.pv, 0) + coalesce(c.uv, 0)), 0)::bigint AS weight
FROM pages AS p
JOIN apps AS a          ON a.id = p.app_id
LEFT JOIN counters AS c ON c.page_id = p.id
WHERE @app::text IN ('', a.name);

-- name: VerifyNext :one
-- Chooses the next targets (pages and sites), in order of id from @from_id on: at most @many, and not more than have
-- @size rows together, but at least one. Selects those to check: targets in the sample that belong to the app @app
-- (empty: any app). Targets of an app that is being deleted are not selected, because its rows are deleted in steps.
--   high     the id of the last chosen target; 0: none is left
--   met      the number of chosen targets
--   weight   the approximate number of rows about the selected targets
--   targets  the ids of the selected targets
--   sites    the ids of the selected sites
WITH following AS MATERIALIZED (
    SELECT p.id, p.site_id, p.app_id
    FROM pages AS p
    WHERE p.id >= @from_id::bigint
    ORDER BY p.id
    LIMIT @many
), asked AS (
    SELECT f.id, f.site_id, k.is_asked, CASE WHEN k.is_asked THEN 1 + coalesce(c.pv, 0) + coalesce(c.uv, 0) ELSE 0 END AS weight
    FROM following AS f
    JOIN apps AS a ON a.id = f.app_id
    LEFT JOIN LATERAL (SELECT n.pv, n.uv FROM counters AS n WHERE n.page_id = f.id OFFSET 0) AS c ON true -- look up by id, not in one scan
    CROSS JOIN LATERAL (
        SELECT a.deleted_at IS NULL
                   AND @app::text IN ('', a.name)
                   AND (@sampled::integer > 1048575 -- 1,048,576 means that all sites are in the sample
                        OR (hashtextextended(a.name || ' ' || (SELECT s.uri FROM pages AS s WHERE s.id = coalesce(f.site_id, f.id)), @seed::bigint) & 1048575) < @sampled)
               AS is_asked
    ) AS k
), running AS (
    SELECT n.id, n.site_id, n.is_asked, n.weight, sum(n.weight) OVER (ORDER BY n.id) AS so_far
    FROM asked AS n
)
SELECT coalesce(max(r.id), 0)::bigint      AS high,
       count(*)                            AS met,
       coalesce(sum(r.weight), 0)::bigint  AS weight,
       coalesce(array_agg(r.id) FILTER (WHERE r.is_asked), '{}')::bigint[] AS targets,
       coalesce(array_agg(r.id) FILTER (WHERE r.is_asked AND r.site_id IS NULL), '{}')::bigint[] AS sites
FROM running AS r
WHERE r.so_far <= @size::bigint
   OR r.so_far = r.weight;

-- name: VerifyNextDay :one
-- Skips @skip closed days after @after, and returns the next closed day; 0 if there is none.
SELECT coalesce((SELECT c.day_id
                 FROM closed_days AS c
                 WHERE c.day_id > @after::integer
                 ORDER BY c.day_id
                 OFFSET @skip
                 LIMIT 1), 0)::integer AS day;

-- name: VerifyNames :many
-- The names of pages, sites and apps for some ids. A negative number is the negated id of an app.
SELECT p.id, a.name AS app, p.uri
FROM pages AS p
JOIN apps AS a ON a.id = p.app_id
WHERE p.id = ANY (@targets::bigint[])
UNION ALL
SELECT -a.id, a.name, '(all sites)'
FROM apps AS a
WHERE -a.id = ANY (@targets);

-- name: VerifyApps :many
-- The ids of all apps or, if @app is not empty, of the app with this name, except apps that are being deleted.
SELECT a.id
FROM apps AS a
WHERE @app::text IN ('', a.name)
  AND a.deleted_at IS NULL
ORDER BY a.id;

-- name: VerifyNextPerson :one
-- Skips @skip rows of people after a key, in the table of one period, and returns the key of the next row.
-- app_id is 0 if there is no next row.
SELECT coalesce((array_agg(n.app_id))[1], 0)::integer AS app_id, coalesce((array_agg(n.id))[1], '::')::inet AS id
FROM (
    SELECT p.app_id, p.id
    FROM people AS p
    WHERE p.period = @period
      AND (p.app_id, p.id) > (@after_app::integer, @after::inet)
    ORDER BY p.app_id, p.id
    OFFSET @skip
    LIMIT 1
) AS n;

-- name: PeoplePeriod :one
-- The present period of the table people, 0 or 1. Instances only write to the partition of this period.
SELECT people_period()::smallint AS period;

-- name: VerifyTagsWaiting :many
-- The tags of recently counted visits, which are not added to tag_days yet.
SELECT n.verdicts, n.tags
FROM tag_news AS n;

-- name: VerifyHoursWaiting :many
-- Adds up those sums by tag that belong to hours (which are also tags), for each page or site and day. The arrays are
-- the columns of one table, which has the sums by tag that are not in tag_days yet.
SELECT w.page_id::bigint AS page_id, w.day_id::integer AS day_id, sum(w.pv)::bigint AS pv, sum(w.newcomers)::bigint AS newcomers
FROM (
    SELECT unnest(@pages::bigint[])     AS page_id,
           unnest(@days::integer[])     AS day_id,
           unnest(@tags::integer[])     AS tag_id,
           unnest(@pvs::bigint[])       AS pv,
           unnest(@newcomers::bigint[]) AS newcomers
) AS w
JOIN tags AS t ON t.id = w.tag_id AND t.name = 'hour'
GROUP BY w.page_id, w.day_id;

-- name: VerifyNextHour :one
-- Skips @skip rows of log_hours after a key, and returns the key of the next row; 0 if there is none.
SELECT coalesce(n.app_id, 0)::integer AS app_id, coalesce(n.hour, 0)::integer AS hour
FROM (SELECT 1) AS one
LEFT JOIN LATERAL (
    SELECT h.app_id, h.hour
    FROM log_hours AS h
    WHERE (h.app_id, h.hour) > (@after_app::integer, @after_hour::integer)
    ORDER BY h.app_id, h.hour
    OFFSET @skip
    LIMIT 1
) AS n ON true;
