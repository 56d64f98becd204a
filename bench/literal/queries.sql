-- Each visit is counted in one transaction. Naive and NaiveFilter use KeysFind, VisitsAdd, CountersAdd and VisitorsAdd.
-- NaiveFilter skips KeysFind if the filter reports all keys as new. Baseline uses CountersHit and VisitCount. The site is
-- always before its page in uris, so that transactions cannot deadlock.

-- name: KeysFind :many
-- Returns a row for each target in @uris. @visitors and @days specify for each target which values are looked up.
--   rank    the visitor's rank; 0 if the visitor is new, or if the rank is not looked up
--   today   whether the visitor has visited the target on this day; false if this is not looked up
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
-- Adds to the counters of the targets, and returns their new values.
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
-- Adds 1 to hot of each target. This also locks the targets' counters until the transaction ends.
INSERT INTO counters AS c (uri, pv, uv, hot)
SELECT unnest(@uris::text[]), 0, 0, 1
ON CONFLICT (uri) DO UPDATE
    SET hot = c.hot + 1;

-- name: VisitCount :many
-- Inserts the visit and the visitor for each target. Adds to pv and uv if there was no conflict, and returns the numbers.
-- This statement runs after CountersHit, because it must see rows that were committed while CountersHit waited for its
-- locks.
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
-- Returns the number of ranks that belong to no visitor, and the number of visitor days that were counted twice.
SELECT ((SELECT coalesce(sum(uv), 0) FROM counters) - (SELECT count(*) FROM visitors))::bigint AS ranks,
       ((SELECT coalesce(sum(pv), 0) FROM counters) - (SELECT count(*) FROM visits))::bigint   AS days;
