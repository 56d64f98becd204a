-- Tags: finding and creating them by name and value, and adding up the visitors counted with each
-- tag.

-- name: TagsFind :many
-- The ids of an app's existing tags, each with its place in the arrays (from 1). Looks up one tag at
-- a time, because writers plan the query once, perhaps while the table is small.
SELECT asked.place::integer AS place, found.id
FROM (
    SELECT unnest(@names::text[])                 AS name,
           unnest(@tag_values::text[])            AS value,
           generate_subscripts(@names::text[], 1) AS place
) AS asked
CROSS JOIN LATERAL (
    SELECT t.id
    FROM tags AS t
    WHERE t.app_id = @app_id
      AND t.name = asked.name
      AND t.value = asked.value
    LIMIT 1
) AS found;

-- name: TagsMake :exec
-- Creates missing tags of an app. The caller has run PagesTallyLock in this transaction.
INSERT INTO tags (app_id, name, value)
SELECT @app_id, unnest(@names::text[]), unnest(@tag_values::text[])
ON CONFLICT (app_id, name, value) DO NOTHING;

-- name: VisitsFind :many
-- Returns the places (from 1) of the rows whose visitor was counted at the target on the day. The
-- values at one index of the arrays are a target, a day and a visitor.
SELECT asked.place::integer AS place
FROM (
    SELECT unnest(@pages::bigint[])                 AS page_id,
           unnest(@days::integer[])                 AS day_id,
           unnest(@ips::inet[])                     AS ip,
           generate_subscripts(@pages::bigint[], 1) AS place
) AS asked
CROSS JOIN LATERAL (
    SELECT v.page_id
    FROM visits AS v
    WHERE v.page_id = asked.page_id
      AND v.day_id = asked.day_id
      AND v.ip BETWEEN asked.ip AND asked.ip
    LIMIT 1
) AS found;

-- name: TagsFoldBegin :one
-- Tries to get the lock for writing tag_days, without waiting, and returns whether the transaction
-- got it.
SELECT pg_try_advisory_xact_lock(hashtext('footfall.fold_tags'))::boolean AS mine;

-- name: TagNewsTake :many
-- Removes at most @most rows from tag_news, which has the tags of recent batches, and returns these
-- rows.
DELETE FROM tag_news AS n
WHERE n.ctid = ANY (ARRAY(SELECT t.ctid FROM tag_news AS t LIMIT @most))
RETURNING n.verdicts, n.tags;

-- name: TagDaysAdd :exec
-- Adds sums to tag_days. The values at one index of the arrays belong to one row, without
-- duplicates. Ignores pages that have been deleted since they were counted.
INSERT INTO tag_days AS t (page_id, day_id, tag_id, pv, newcomers)
SELECT n.page_id, n.day_id, n.tag_id, n.pv, n.newcomers
FROM (
    SELECT unnest(@pages::bigint[])     AS page_id,
           unnest(@days::integer[])     AS day_id,
           unnest(@tags::integer[])     AS tag_id,
           unnest(@pvs::bigint[])       AS pv,
           unnest(@newcomers::bigint[]) AS newcomers
) AS n
WHERE EXISTS (SELECT FROM pages AS p WHERE p.id = n.page_id)
ON CONFLICT (page_id, day_id, tag_id) DO UPDATE
    SET pv        = t.pv + excluded.pv,
        newcomers = t.newcomers + excluded.newcomers;
