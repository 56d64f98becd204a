-- Queues of an app: how far they were counted, and their deletion with the app.

-- name: QueuesList :many
-- How far each part of an app's queues was counted, and how many of its messages were refused and are stored. A part
-- is, for example, a partition of a Kafka topic.
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
-- Waits for running batches of visits from an app's queues, and blocks later ones until the transaction ends.
SELECT hold_queues(@app_id);

-- name: RefusedDelete :exec
-- Deletes the refused messages of an app.
SELECT delete_refused(@app_id);
