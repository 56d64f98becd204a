-- Counted lines of access logs. Each app is in the place of a target.

-- name: VerifyNextHour :one
-- The hour of a log that is so many rows after another one; the last one of all: 0.
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

-- name: VerifyLines :many
-- In a range of hours, the lines of each server are those of its blocks, which follow each other without
-- a gap.
WITH hours AS (
    SELECT u.app_id, u.hour, u.server, u.version, u.gone
    FROM (
        SELECT h.app_id, h.hour, unnest(h.servers) AS server, unnest(h.versions) AS version, unnest(h.gone) AS gone
        FROM log_hours AS h
        WHERE (h.app_id, h.hour) > (@after_app::integer, @after_hour::integer)
          AND (h.app_id, h.hour) <= (@until_app::integer, @until_hour::integer)
    ) AS u
), blocks AS (
    SELECT b.app_id, b.hour, b.server, sum(b.lines) AS lines, min(b.first) AS first, max(b.first + b.lines) AS behind, bool_and(b.follows) AS follow
    FROM (
        SELECT l.app_id, l.hour, l.server, l.first, octet_length(l.hashes) / 8 AS lines,
               l.first = lag(l.first + octet_length(l.hashes) / 8, 1, l.first) OVER (PARTITION BY l.app_id, l.hour, l.server ORDER BY l.first) AS follows
        FROM counted_lines AS l
        WHERE (l.app_id, l.hour) > (@after_app::integer, @after_hour::integer)
          AND (l.app_id, l.hour) <= (@until_app::integer, @until_hour::integer)
    ) AS b
    GROUP BY b.app_id, b.hour, b.server
), checks AS (
    SELECT a.id AS app_id, coalesce(h.hour, b.hour) AS hour, coalesce(h.version - h.gone, 0) AS should, coalesce(b.lines, 0)::bigint AS lines,
           CASE
               WHEN h.app_id IS NULL OR h.version < h.gone THEN true
               WHEN b.app_id IS NULL THEN h.version > h.gone
               ELSE NOT b.follow OR b.first <> h.gone OR b.behind <> h.version
           END AS wrong
    FROM hours AS h
    FULL JOIN blocks AS b ON b.app_id = h.app_id AND b.hour = h.hour AND b.server = h.server
    JOIN apps AS a ON a.id = coalesce(h.app_id, b.app_id)
    WHERE @app::text IN ('', a.name)
)
SELECT 'lines'::text                                     AS measure,
       count(*)                                          AS held,
       0::bigint                                         AS behind,
       count(*) FILTER (WHERE c.wrong)                   AS broken,
       coalesce((array_agg(ARRAY[-c.app_id, to_char(date '1970-01-01' + c.hour / 24, 'YYYYMMDD')::bigint, 0, c.lines, c.should, c.should])
                     FILTER (WHERE c.wrong))[:@n::integer], '{}')::bigint[] AS offenders
FROM checks AS c;

-- name: VerifyLineDays :many
-- The lines of a day are no more than hot of the app's sites on that day and its neighbours: clocks of
-- logs and of apps differ. Up to a day after the last line that 0.2 counted, lines may be recorded that
-- were not counted.
WITH lines AS (
    SELECT u.app_id, u.day, sum(u.lines)::bigint AS lines
    FROM (
        SELECT h.app_id, date '1970-01-01' + h.hour / 24 AS day, unnest(h.versions) - unnest(h.gone) AS lines
        FROM log_hours AS h
        JOIN apps AS a ON a.id = h.app_id
        WHERE @app::text IN ('', a.name)
          AND a.deleted_at IS NULL
    ) AS u
    WHERE NOT EXISTS (SELECT FROM logs AS l WHERE l.app_id = u.app_id AND coalesce(l.last_at, 'infinity') > u.day - interval '1 day')
    GROUP BY u.app_id, u.day
), checks AS (
    SELECT l.app_id, l.day, l.lines, (
        SELECT coalesce(sum(d.hot), 0)::bigint
        FROM pages AS p
        JOIN days AS d ON d.page_id = p.id
        WHERE p.app_id = l.app_id
          AND p.site_id IS NULL
          AND d.day_id BETWEEN to_char(l.day - 1, 'YYYYMMDD')::integer AND to_char(l.day + 1, 'YYYYMMDD')::integer
    ) AS hot
    FROM lines AS l
)
SELECT 'lines of days'::text                             AS measure,
       count(*)                                          AS held,
       0::bigint                                         AS behind,
       count(*) FILTER (WHERE c.lines > c.hot)           AS broken,
       coalesce((array_agg(ARRAY[-c.app_id, to_char(c.day, 'YYYYMMDD')::bigint, 0, c.lines, 0, c.hot])
                     FILTER (WHERE c.lines > c.hot))[:@n::integer], '{}')::bigint[] AS offenders
FROM checks AS c;
