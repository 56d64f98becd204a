-- Ids by which visits may be repeated.

-- name: VisitIDsAdd :exec
-- Notes ids of visits in the transaction of the batch that counts them, each given once, and all in
-- the one order in which every batch does. Fails on the key where a visit was counted with one of
-- them before; whoever counts one at this moment is waited for.
INSERT INTO visit_ids (app_id, day_id, id)
SELECT v.app_id, (SELECT today('UTC')) AS day_id, v.id
FROM (
    SELECT unnest(@apps::integer[]) AS app_id,
           unnest(@ids::text[])     AS id
) AS v
ORDER BY v.app_id, v.id COLLATE "C";

-- name: VisitIDsKnown :many
-- Those of some ids with which a visit was counted before.
SELECT v.app_id, v.id
FROM (
    SELECT unnest(@apps::integer[]) AS app_id,
           unnest(@ids::text[])     AS id
) AS asked
JOIN visit_ids AS v ON v.app_id = asked.app_id AND v.id = asked.id COLLATE "C";

-- name: VisitIDsForget :one
-- Forgets ids that came more than so many days ago, so many at most; returns how many.
SELECT forget_visit_ids(@days, @most)::bigint AS forgotten;
