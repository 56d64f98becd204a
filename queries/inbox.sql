-- The inbox: visits that are accepted now and counted a moment later.

-- name: InboxPut :exec
-- Writes visits of an app, in a transaction started by BatchBegin. In all arrays except uris and
-- tag_sets, the values at one index belong to one visit.
SELECT put_in_inbox(@app, @tz, @visitor, @ipv6_prefix::smallint, @uris::text[], @pages::integer[], @days::integer[],
                    @new_pages::integer[], @ips::inet[], sqlc.narg(ids)::text[], sqlc.narg(tag_sets)::text[], sqlc.narg(tag_places)::smallint[]);

-- name: InboxLook :many
-- Returns for each app with rows after the row number @after: the number of waiting visits, the first
-- and the last row, and when the first row arrived. is_locked is true if another transaction holds a
-- lock on the app's days, so that the app's visits cannot be counted now.
SELECT w.app_id, w.visits::bigint AS visits, w.first::bigint AS first, w.last::bigint AS last, f.received_at AS oldest,
       (w.app_id IN (
           SELECT l.objid::bigint
           FROM pg_catalog.pg_locks AS l
           JOIN pg_catalog.pg_database AS d ON d.oid = l.database AND d.datname = current_database()
           WHERE l.locktype = 'advisory'
             AND l.classid::bigint = hashtext('footfall.past_days')::bigint & 4294967295
             AND l.objsubid = 2 -- 2: a lock with two keys
             AND l.mode = 'ExclusiveLock'
             AND l.granted
       ))::boolean AS is_locked
FROM (
    SELECT i.app_id, sum(i.visits - i.counted) AS visits, min(i.number) AS first, max(i.number) AS last
    FROM inbox AS i
    WHERE i.number > @after
    GROUP BY i.app_id
) AS w
JOIN inbox AS f ON f.number = w.first
ORDER BY w.app_id;

-- name: InboxRead :many
-- Returns the next rows after the row number @after: so many that they contain at least @visits waiting
-- visits, but at most 4,000 rows. @of_app selects one app (0: all apps). Rows of apps in @but_for, and
-- of apps that are being moved, are left out. counts_so is true if the app exists and still has the
-- settings for days and visitors with which the row was written.
SELECT r.number, r.counted, r.app_id, r.tz, r.visitor, r.ipv6_prefix, r.uris, r.pages, r.days, r.new_pages, r.ips,
       coalesce(r.ids, '{}')::text[]            AS ids,
       coalesce(r.tag_sets, '{}')::text[]       AS tag_sets,
       coalesce(r.tag_places, '{}')::smallint[] AS tag_places,
       (a.id IS NOT NULL)::boolean              AS counts_so
FROM (
    SELECT i.*, sum(i.visits - i.counted) OVER (ORDER BY i.number) - (i.visits - i.counted) AS before
    FROM inbox AS i
    WHERE i.number > @after
      AND i.app_id <> ALL (@but_for::integer[])
      AND i.app_id <> ALL (ARRAY(SELECT m.id FROM apps AS m WHERE m.moving_to IS NOT NULL))
      AND @of_app::integer IN (0, i.app_id)
    ORDER BY i.number
    LIMIT 4000
) AS r
LEFT JOIN apps AS a ON a.id = r.app_id AND a.deleted_at IS NULL
                       AND a.tz = r.tz AND a.visitor = r.visitor AND a.ipv6_prefix = r.ipv6_prefix
WHERE r.before < @visits::bigint
ORDER BY r.number;

-- name: InboxTake :exec
-- Removes visits in the transaction that counts them. The values at one index of the arrays belong to
-- one row:
--   numbers  the row numbers, in order
--   froms    how many visits of the row were removed before
--   untils   how many are removed after this call: all visits of the row, except perhaps for the last row
-- Fails with SQLSTATE FF004 unless all of these visits are present.
SELECT take_from_inbox(@numbers::bigint[], @froms::integer[], @untils::integer[]);

-- name: InboxBehind :one
-- The number of accepted visits of an app that are not counted yet. Rows up to the row number @after are
-- left out.
SELECT inbox_behind(@app, @after)::bigint AS visits;

-- name: InboxUncounted :one
-- The number of visits of an app that wait in rows up to the row number @until, and the last of these
-- rows. Also returns the first waiting row of all apps, whose number increases as rows are counted.
SELECT coalesce(sum(i.visits - i.counted), 0)::bigint              AS visits,
       coalesce(max(i.number), 0)::bigint                          AS last,
       coalesce((SELECT min(f.number) FROM inbox AS f), 0)::bigint AS first
FROM inbox AS i
WHERE i.app_id = @app
  AND i.number <= @until;

-- name: InboxHold :exec
-- Waits until no other transaction writes to the inbox, and blocks later writes until this transaction
-- ends.
SELECT pg_advisory_xact_lock(hashtext('footfall.inbox'));
