-- Each visit is one transaction. The naive ways use KeysFind (unless a filter makes it unnecessary), VisitsAdd, CountersAdd and
-- VisitorsAdd. The baseline uses CountersHit and VisitCount. The site always comes before its page, so that visits cannot deadlock.

-- name: KeysFind :many
-- For each requested target: the visitor's rank (0: never visited, or not requested), and whether the visitor was there on this
-- day (false: also if not requested).
SELECT asked.uri::text AS uri,
       coalesce(CASE WHEN asked.visitor
                     THEN (SELECT v.rank FROM visitors AS v WHERE v.uri = asked.uri AND v.ip = @ip) END, 0)::bigint AS rank,
       (asked.day
           AND EXISTS (SELECT FROM visits AS s WHERE s.ip = @ip AND s.day_id = @day_id AND s.uri = asked.uri))::boolean AS today
FROM (SELECT unnest(@uris::text[])        AS uri,
             unnest(@visitors::boolean[]) AS visitor,
             unnest(@days::boolean[])     AS day) AS asked;

-- name: VisitsAdd :execrows
INSERT INTO visits (ip, day_id, uri)
SELECT @ip, @day_id, unnest(@uris::text[])
ON CONFLICT DO NOTHING;

-- name: CountersAdd :many
-- Adds to the counters of the targets and returns them.
INSERT INTO counters AS c (uri, pv, uv, hot)
SELECT unnest(@uris::text[]), unnest(@pvs::bigint[]), unnest(@uvs::bigint[]), 1
ON CONFLICT (uri) DO UPDATE
    SET pv  = c.pv + excluded.pv,
        uv  = c.uv + excluded.uv,
        hot = c.hot + 1
RETURNING uri, pv, uv, hot;

-- name: VisitorsAdd :execrows
INSERT INTO visitors (uri, ip, rank)
SELECT unnest(@uris::text[]), @ip, unnest(@ranks::bigint[])
ON CONFLICT DO NOTHING;

-- name: CountersHit :exec
-- Counts the visit in hot, which locks the targets' counters until the transaction ends.
INSERT INTO counters AS c (uri, pv, uv, hot)
SELECT unnest(@uris::text[]), 0, 0, 1
ON CONFLICT (uri) DO UPDATE
    SET hot = c.hot + 1;

-- name: VisitCount :many
-- Determines, under the locks of CountersHit, whether the visit is new to each target, from conflicts of the inserts. It is a
-- separate statement because it must see rows that were committed while CountersHit waited.
WITH days AS (
    INSERT INTO visits (ip, day_id, uri)
    SELECT @ip, @day_id, unnest(@uris::text[])
    ON CONFLICT DO NOTHING
    RETURNING uri
), newcomers AS (
    INSERT INTO visitors (uri, ip, rank)
    SELECT c.uri, @ip, c.uv + 1
    FROM counters AS c
    WHERE c.uri = ANY (@uris::text[])
    ON CONFLICT DO NOTHING
    RETURNING uri, rank
), judged AS MATERIALIZED (
    SELECT c.uri, c.pv, c.uv, c.hot,
           c.uri IN (SELECT uri FROM days)      AS first_today,
           c.uri IN (SELECT uri FROM newcomers) AS newcomer
    FROM counters AS c
    WHERE c.uri = ANY (@uris::text[])
), summed AS (
    UPDATE counters AS c
    SET pv = c.pv + j.first_today::integer,
        uv = c.uv + j.newcomer::integer
    FROM judged AS j
    WHERE c.uri = j.uri
      AND (j.first_today OR j.newcomer)
)
SELECT uri,
       (pv + first_today::integer)::bigint AS pv,
       (uv + newcomer::integer)::bigint    AS uv,
       hot,
       CASE WHEN newcomer THEN uv + 1
            ELSE (SELECT v.rank FROM visitors AS v WHERE v.uri = judged.uri AND v.ip = @ip) END::bigint AS rank,
       first_today::boolean AS first_today,
       newcomer::boolean    AS newcomer
FROM judged;

-- name: CountersAll :many
SELECT uri, pv, uv, hot
FROM counters;

-- name: VisitorsAll :many
SELECT uri, ip, rank
FROM visitors;

-- name: Losses :one
-- Counts errors: ranks without a visitor, and days that were counted twice.
SELECT ((SELECT coalesce(sum(uv), 0) FROM counters) - (SELECT count(*) FROM visitors))::bigint AS ranks,
       ((SELECT coalesce(sum(pv), 0) FROM counters) - (SELECT count(*) FROM visits))::bigint   AS days;
