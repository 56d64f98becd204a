-- One visit of the per-request baseline, a transaction of these four in this order.

-- name: VisitorFind :many
-- For each target asked: the visitor's rank (0: never came), and whether he came on this day.
SELECT asked.uri::text AS uri,
       coalesce((SELECT v.rank FROM visitors AS v WHERE v.uri = asked.uri AND v.ip = @ip), 0)::bigint AS rank,
       EXISTS (SELECT FROM visits AS s WHERE s.ip = @ip AND s.day_id = @day_id AND s.uri = asked.uri) AS today
FROM (SELECT unnest(@uris::text[]) AS uri) AS asked;

-- name: VisitsAdd :exec
-- The targets come sorted, so that two visits of one visitor cannot deadlock.
INSERT INTO visits (ip, day_id, uri)
SELECT @ip, @day_id, unnest(@uris::text[])
ON CONFLICT DO NOTHING;

-- name: CountersAdd :many
-- Adds to the counters of the targets, which come sorted, and returns them.
INSERT INTO counters AS c (uri, pv, uv, hot)
SELECT unnest(@uris::text[]), unnest(@pvs::bigint[]), unnest(@uvs::bigint[]), 1
ON CONFLICT (uri) DO UPDATE
    SET pv  = c.pv + excluded.pv,
        uv  = c.uv + excluded.uv,
        hot = c.hot + 1
RETURNING uri, pv, uv, hot;

-- name: VisitorsAdd :exec
INSERT INTO visitors (uri, ip, rank)
SELECT unnest(@uris::text[]), @ip, unnest(@ranks::bigint[])
ON CONFLICT DO NOTHING;

-- name: Losses :one
-- What went wrong: ranks that were given to nobody, and days that were counted twice.
SELECT ((SELECT coalesce(sum(uv), 0) FROM counters) - (SELECT count(*) FROM visitors))::bigint AS ranks,
       ((SELECT coalesce(sum(pv), 0) FROM counters) - (SELECT count(*) FROM visits))::bigint   AS days;
