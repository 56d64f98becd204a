-- What `footfall verify` recomputes, in many snapshots that last a second or so each: an old one
-- would keep PostgreSQL from clearing away the versions of rows that every visit makes. What is
-- compared with each other is read in the same snapshot: a range of targets with all that is
-- theirs, a part of the visitors of one target, or some sites with their pages.
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

-- name: VerifyWeight :one
-- About how many rows the targets of an app, or of all where none is named, have together.
SELECT coalesce(sum(1 + coalesce(c.pv, 0) + coalesce(c.uv, 0)), 0)::bigint AS weight
FROM pages AS p
JOIN apps AS a          ON a.id = p.app_id
LEFT JOIN counters AS c ON c.page_id = p.id
WHERE @app::text IN ('', a.name);

-- name: VerifyNext :one
-- The targets asked for from a number on, in order, as many as have about so many rows together, but
-- one at least, and not too many; none where none is left. Those of an app that is being deleted
-- are left out: its rows go step by step.
WITH following AS (
    SELECT p.id, p.site_id, 1 + coalesce(c.pv, 0) + coalesce(c.uv, 0) AS weight, coalesce(c.uv, 0) AS uv
    FROM pages AS p
    JOIN pages AS s         ON s.id = coalesce(p.site_id, p.id)
    JOIN apps AS a          ON a.id = p.app_id
    LEFT JOIN counters AS c ON c.page_id = p.id
    WHERE p.id >= @from_id::bigint
      AND a.deleted_at IS NULL
      AND @app::text IN ('', a.name)
      AND (hashtextextended(a.name || ' ' || s.uri, @seed::bigint) & 1048575) < @sampled::integer -- of 1,048,576
    ORDER BY p.id
    LIMIT @many
), running AS (
    SELECT f.id, f.site_id, f.weight, f.uv, sum(f.weight) OVER (ORDER BY f.id) AS so_far
    FROM following AS f
)
SELECT coalesce(min(r.id), 0)::bigint      AS low,
       coalesce(max(r.id), 0)::bigint      AS high,
       coalesce(sum(r.weight), 0)::bigint  AS weight,
       coalesce(sum(r.uv), 0)::bigint      AS visitors,
       coalesce(array_agg(r.id), '{}')::bigint[] AS targets,
       coalesce(array_agg(r.id) FILTER (WHERE r.site_id IS NULL), '{}')::bigint[] AS sites
FROM running AS r
WHERE r.so_far <= @size::bigint
   OR r.so_far = r.weight;

-- name: VerifyNextVisitor :one
-- The visitor of a target who comes after one, and after so many others that are skipped, in the
-- order of addresses; empty where there is none.
SELECT coalesce((SELECT v.ip::text
                 FROM visitors AS v
                 WHERE v.page_id = @target::bigint
                   AND v.ip > (@after_ip::text)::inet
                 ORDER BY v.page_id, v.ip
                 OFFSET @skip
                 LIMIT 1), '')::text AS ip;

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
