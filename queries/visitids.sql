-- Visit ids: if a caller sends a visit again with the same id, it counts once.

-- name: VisitIDsAdd :exec
-- Stores visit ids in the transaction of the batch that counts the visits. The caller passes each
-- id only once. Every batch inserts its ids in the same order, so that batches cannot deadlock.
-- Waits for a transaction that is counting a visit with one of the ids. Fails, because the key is
-- violated, if a visit with one of the ids was counted before.
INSERT INTO visit_ids (app_id, day_id, id)
SELECT v.app_id, (SELECT today('UTC')) AS day_id, v.id
FROM (
    SELECT unnest(@apps::integer[]) AS app_id,
           unnest(@ids::text[])     AS id
) AS v
ORDER BY v.app_id, v.id COLLATE "C";

-- name: VisitIDsKnown :many
-- The given ids whose visits were counted before.
SELECT v.app_id, v.id
FROM (
    SELECT unnest(@apps::integer[]) AS app_id,
           unnest(@ids::text[])     AS id
) AS asked
JOIN visit_ids AS v ON v.app_id = asked.app_id AND v.id = asked.id COLLATE "C";

-- name: VisitIDsForget :one
-- Deletes ids that arrived more than @days days ago, at most @most. Returns their number.
SELECT forget_visit_ids(@days, @most)::bigint AS forgotten;
