-- Queues of an app: how far they were counted, and what ends with the app.

-- name: QueuesList :many
-- How far the queues of an app were counted, with how many refused messages of each part are kept.
SELECT
    p.source,
    p.part,
    p.next,
    p.used_at,
    (SELECT count(*)
     FROM refused AS r
     WHERE (r.app_id, r.source, r.part) = (p.app_id, p.source, p.part)) AS refused
FROM positions AS p
WHERE p.app_id = @app_id
  AND p.content IS NULL
  AND p.source NOT IN ('logs', 'moved')
ORDER BY p.source, length(p.part), p.part;

-- name: QueuesHold :exec
-- Waits for the batches of an app's queues, and keeps later ones waiting.
SELECT hold_queues(@app_id);

-- name: RefusedDelete :exec
-- Deletes the refused messages of an app.
SELECT delete_refused(@app_id);
