-- What `footfall verify` recomputes, in many snapshots that last a second or so each: an old one
-- would keep PostgreSQL from clearing away the versions of rows that every visit makes. What is
-- compared with each other is read in the same snapshot: a range of targets with all that is
-- theirs, or some sites with their pages.
--
-- The queries that hold promises return a row for each measure: how many times it was held and how
-- often it was broken, how many rows stand behind it, and up to n offenders as a flat list of six
-- numbers each: target, day, previous day, what is stored, and the least and the most that it may
-- be. A range includes both ends; whole says that all of it is asked for, and not just the targets
-- listed.
--
-- Nearly all rows of the largest tables are right in the strictest sense. They are counted
-- together, and only the others are held against each measure by itself.

-- name: VerifyScope :one
-- The first day of which any app keeps its visits (0: all are kept), and how many apps are being
-- deleted.
SELECT coalesce(min(coalesce(k.from_day, 0)) FILTER (WHERE a.deleted_at IS NULL), 0)::integer AS from_day,
       count(*) FILTER (WHERE a.deleted_at IS NOT NULL) AS being_deleted
FROM apps AS a
LEFT JOIN visits_kept AS k ON k.app_id = a.id;

-- name: VerifyAhead :many
-- Days from which apps keep visits, each app in the place of a target, and closed days, in that of
-- none: none comes after the latest day that it is anywhere, or its rows would not be looked at.
WITH checks AS (
    SELECT 'kept ahead' AS measure, -k.app_id AS target, k.from_day AS day_id
    FROM visits_kept AS k
    JOIN apps AS a ON a.id = k.app_id
    WHERE @app::text IN ('', a.name)
    UNION ALL
    SELECT 'closed ahead', 0, c.day_id
    FROM closed_days AS c
)
SELECT c.measure::text                                   AS measure,
       count(*)                                          AS held,
       0::bigint                                         AS behind,
       count(*) FILTER (WHERE c.day_id > latest_day())   AS broken,
       coalesce((array_agg(ARRAY[c.target, c.day_id, 0, c.day_id, 0, latest_day()])
                     FILTER (WHERE c.day_id > latest_day()))[:@n::integer], '{}')::bigint[] AS offenders
FROM checks AS c
GROUP BY c.measure;

-- name: VerifyBelonging :many
-- Who is here now, at sites that exist, and pages of history, which belong to the site of their day; each of
-- these in the place of its app. Instances may write here while an app is deleted or moved away: for a day after that,
-- its sites may be missing.
WITH checks AS (
    SELECT 'site of here' AS measure, h.site_id AS target, 0 AS day_id, p.id IS NULL OR p.site_id IS NOT NULL AS wrong
    FROM here AS h
    LEFT JOIN pages AS p ON p.id = h.site_id
    LEFT JOIN apps AS a  ON a.id = p.app_id
    WHERE @app::text IN ('', a.name)
      AND (p.id IS NOT NULL
           OR NOT EXISTS (SELECT FROM changes AS c WHERE c.what = 'app' AND (c.is_now = 'deleted' OR starts_with(c.is_now, 'moved to the cell '))
                       AND c.at > h.came_at - interval '1 day'))
    UNION ALL
    SELECT 'site of history', -d.app_id, d.day_id, h.uri <> d.site AND NOT starts_with(h.uri, d.site || '/')
    FROM history AS h
    JOIN history_days AS d ON d.id = h.day
    JOIN apps AS a         ON a.id = d.app_id
    WHERE @app IN ('', a.name)
)
SELECT c.measure::text                      AS measure,
       count(*)                             AS held,
       0::bigint                            AS behind,
       count(*) FILTER (WHERE c.wrong)      AS broken,
       coalesce((array_agg(ARRAY[c.target, c.day_id, 0, 1, 0, 0])
                     FILTER (WHERE c.wrong))[:@n::integer], '{}')::bigint[] AS offenders
FROM checks AS c
GROUP BY c.measure;

-- name: VerifyWeight :one
-- About how many rows the targets of an app, or of all where none is named, have together.
SELECT coalesce(sum(1 + coalesce(c.pv, 0) + coalesce(c.uv, 0)), 0)::bigint AS weight
FROM pages AS p
JOIN apps AS a          ON a.id = p.app_id
LEFT JOIN counters AS c ON c.page_id = p.id
WHERE @app::text IN ('', a.name);

-- name: VerifyNext :one
-- The pages from a number on, in order, as many as have about so many rows together, but one at
-- least, and not too many: how many they are, the last, 0 where none is left, and which of them are
-- asked for. Those of an app that is being deleted are left out: its rows go step by step.
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
    LEFT JOIN LATERAL (SELECT n.pv, n.uv FROM counters AS n WHERE n.page_id = f.id OFFSET 0) AS c ON true -- one by one, and not all
    CROSS JOIN LATERAL (
        SELECT a.deleted_at IS NULL
                   AND @app::text IN ('', a.name)
                   AND (@sampled::integer > 1048575 -- of 1,048,576
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
-- The closed day that comes after one, and after so many others that are skipped; 0 where there is
-- none.
SELECT coalesce((SELECT c.day_id
                 FROM closed_days AS c
                 WHERE c.day_id > @after::integer
                 ORDER BY c.day_id
                 OFFSET @skip
                 LIMIT 1), 0)::integer AS day;

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

-- name: VerifyNextPerson :one
-- The last key of the next so many rows of people after a key in one of its two tables; none (app 0)
-- where no row follows.
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

-- name: VerifyPeople :many
-- The rows of people in a range of keys, each app in the place of a target. Heights grow with each
-- step and end at 4, so that nobody leads to themselves or over more steps than four: therefore each
-- row is held against the next one alone, which is found by its key: but rows of the period before,
-- in whose place there are others, lead nowhere.
WITH found AS MATERIALIZED (
    SELECT p.app_id, p.height, p.id, p.person, p.tag_ids, (SELECT people_period()) AS open, -- once
           p.period = (SELECT people_period())
               OR NOT EXISTS (SELECT FROM people AS o WHERE o.period = 1 - p.period AND o.app_id = p.app_id AND o.id = p.id) AS holds
    FROM people AS p
    WHERE p.period = @period
      AND (p.app_id, p.id) > (@after_app::integer, @after::inet)
      AND (p.app_id, p.id) <= (@until_app::integer, @until::inet)
      AND @app::text IN ('', (SELECT a.name FROM apps AS a WHERE a.id = p.app_id))
), apart AS (
    SELECT f.app_id, count(*) AS rows,
           count(*) FILTER (WHERE f.person IS NOT NULL AND f.holds AND coalesce(next.height, 0) <= f.height) AS lost,
           count(*) FILTER (WHERE f.height NOT BETWEEN 0 AND 4 - (f.person IS NOT NULL)::integer
               OR f.tag_ids IS NOT NULL AND (f.person IS NOT NULL OR cardinality(f.tag_ids) NOT BETWEEN 1 AND 8)) AS strange,
           count(*) FILTER (WHERE f.tag_ids IS NOT NULL
               AND cardinality(f.tag_ids) <> (SELECT count(DISTINCT t.name) FROM tags AS t WHERE t.app_id = f.app_id AND t.id = ANY (f.tag_ids))) AS untagged
    FROM found AS f
    LEFT JOIN LATERAL (
        SELECT n.height
        FROM people AS n
        WHERE n.period IN (0, 1)
          AND n.app_id = f.app_id
          AND n.id = f.person
        ORDER BY n.period = f.open DESC
        LIMIT 1
    ) AS next ON f.person IS NOT NULL
    GROUP BY f.app_id
), checks AS (
    SELECT p.app_id, p.rows, m.measure, m.broken
    FROM apart AS p
    CROSS JOIN LATERAL (
        SELECT unnest(ARRAY['people', 'people rows', 'people tags', 'people apps']::text[]) AS measure,
               unnest(ARRAY[p.lost, p.strange, p.untagged,
                            CASE WHEN EXISTS (SELECT FROM apps AS a WHERE a.id = p.app_id AND a.visitor = 'id') THEN 0 ELSE p.rows END]::bigint[]) AS broken
    ) AS m
)
SELECT c.measure::text                          AS measure,
       sum(c.rows)::bigint                      AS held,
       0::bigint                                AS behind,
       sum(c.broken)::bigint                    AS broken,
       coalesce((array_agg(ARRAY[-c.app_id, 0, 0, c.broken, 0, 0])
                     FILTER (WHERE c.broken > 0))[:@n::integer], '{}')::bigint[] AS offenders
FROM checks AS c
GROUP BY c.measure;

-- name: PeoplePeriod :one
-- Which of the two tables of people is written to.
SELECT people_period()::smallint AS period;
