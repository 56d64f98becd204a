-- The inbox: visits that are accepted now and counted a moment later.

-- name: InboxPut :exec
-- Writes visits of an app to the table that is open, in a transaction that BatchBegin has begun.
-- The arrays are one table, but uris and tag_sets.
SELECT put_in_inbox(@app, @tz, @visitor, @ipv6_prefix::smallint, @uris::text[], @pages::integer[], @days::integer[],
                    @new_pages::integer[], @ips::inet[], sqlc.narg(ids)::text[], sqlc.narg(tag_sets)::text[], sqlc.narg(tag_places)::smallint[]);

-- name: InboxLook :one
-- What is in the inbox: its open turn, with how many rows and visits; how many visits of closed
-- turns wait, how many of them were put aside, and of which apps these are; how many visits the
-- tables hold that are closed, counted ones included; how many were ever accepted; and since when
-- the first visit waits (1970: none does). No row where none of its tables takes visits.
SELECT o.turn, w.rows, w.visits, c.waiting::bigint AS waiting, c.aside::bigint AS aside, c.aside_apps::integer[] AS aside_apps,
       (c.aside + (SELECT coalesce(sum(t.accepted), 0) FROM inbox_turns AS t WHERE t.turn > 0))::bigint AS kept,
       (o.accepted_before + w.visits)::bigint                                                           AS accepted,
       coalesce(least(first.received_at, w.oldest), 'epoch')::timestamptz                               AS oldest
FROM inbox_turns AS o
CROSS JOIN LATERAL (
    SELECT coalesce(sum(a.waiting), 0) AS waiting, coalesce(sum(a.waiting) FILTER (WHERE a.turn < 0), 0) AS aside,
           coalesce(array_agg(a.app_id) FILTER (WHERE a.turn < 0), '{}') AS aside_apps
    FROM inbox_apps AS a
    WHERE a.waiting > 0
) AS c
CROSS JOIN LATERAL (
    SELECT count(*)::bigint AS rows, coalesce(sum(i.visits), 0)::bigint AS visits, min(i.received_at) AS oldest
    FROM inbox AS i
    WHERE i.slot = o.slot
      AND i.turn = o.turn
) AS w
CROSS JOIN LATERAL (
    SELECT min(r.received_at) AS received_at
    FROM (
        SELECT min(a.turn) AS turn FROM inbox_apps AS a WHERE a.waiting > 0 AND a.turn > 0
        UNION ALL
        SELECT a.turn FROM inbox_apps AS a WHERE a.waiting > 0 AND a.turn < 0
    ) AS f
    JOIN inbox_turns AS t ON t.turn = f.turn
    CROSS JOIN LATERAL (
        SELECT i.received_at
        FROM inbox AS i
        WHERE i.slot = t.slot
          AND i.turn = t.turn
          AND i.number >= t.next >> 16
          AND i.number * 65536 + i.visits > t.next
        ORDER BY i.number
        LIMIT 1
    ) AS r
) AS first
WHERE o.closed_at IS NULL;

-- name: InboxUncounted :one
-- How many visits wait in closed turns up to one, or were put aside: of an app, and of all.
SELECT coalesce(sum(a.waiting) FILTER (WHERE a.app_id = @app), 0)::bigint AS of_app,
       coalesce(sum(a.waiting), 0)::bigint                               AS of_all
FROM inbox_apps AS a
WHERE a.waiting > 0
  AND a.turn <= @turn;

-- name: InboxTurnNext :one
-- The closed turn up to one that is to be counted next: visits that were put aside, if it is time to
-- try them again, or the first turn in which any wait; no row: none.
SELECT t.turn, t.slot, t.next
FROM inbox_turns AS t
WHERE t.turn <= @until
  AND t.try_at <= now()
  AND EXISTS (SELECT FROM inbox_apps AS a WHERE a.turn = t.turn AND a.waiting > 0)
ORDER BY t.turn
LIMIT 1;

-- name: InboxRest :exec
-- Lets visits that were put aside wait for as long again as they have, from a second up to so many.
UPDATE inbox_turns AS t
SET try_at = now() + least(greatest(now() - t.closed_at, interval '1 second'), make_interval(secs => @most))
WHERE t.turn = @turn
  AND t.turn < 0;

-- name: InboxTrySoon :exec
-- Has what was put aside of an app tried in a second, however long it was to wait.
UPDATE inbox_turns AS t
SET try_at = now() + interval '1 second'
WHERE -t.turn = @app::integer
  AND t.try_at > now() + interval '1 second';

-- name: InboxClose :one
-- Closes the table that is open, and opens another: the turn that has ended; 0: it has nothing.
SELECT turn_inbox()::bigint AS turn;

-- name: InboxEmpty :one
-- Empties the tables that were read to their end, if nobody uses them, and no transaction younger
-- than so many seconds has a snapshot in which they were not; how many.
SELECT empty_inbox(@beside_younger_than::integer)::integer AS emptied;

-- name: InboxDeleteCounted :exec
-- Deletes the rows of an app that are before the positions. Nothing else deletes rows but of what
-- was put aside, and a table is not emptied while visits of any app wait there, or a dump reads it.
-- A dump keeps what its snapshot has.
DELETE FROM inbox AS i
USING inbox_turns AS t
WHERE i.app_id = @app
  AND i.slot = t.slot
  AND i.turn = t.turn
  AND i.number * 65536 + i.visits <= t.next;

-- name: InboxPassLost :one
-- Passes by what waits in a closed turn, but of which no rows are left; how many visits.
SELECT pass_lost_in_inbox(@turn)::bigint AS visits;

-- name: InboxRead :many
-- The next rows of a closed turn from its position on, as many as have about so many visits, at
-- least one; with whether their app has visits put aside, and whether it still tells days and
-- visitors apart as it did. The first number only says where to look: no row before it is behind
-- the position.
SELECT r.number, r.app_id, r.tz, r.visitor, r.ipv6_prefix, r.uris, r.pages, r.days, r.new_pages, r.ips,
       coalesce(r.ids, '{}')::text[]            AS ids,
       coalesce(r.tag_sets, '{}')::text[]       AS tag_sets,
       coalesce(r.tag_places, '{}')::smallint[] AS tag_places,
       (s.turn IS NOT NULL)::boolean            AS is_aside,
       (a.id IS NOT NULL)::boolean              AS counts_so
FROM (
    SELECT i.*, sum(i.visits) OVER (ORDER BY i.number) - i.visits AS before
    FROM inbox AS i
    JOIN inbox_turns AS t ON t.turn = i.turn
    WHERE i.slot = @slot
      AND i.turn = @turn
      AND i.number >= @from_number
      AND i.number * 65536 + i.visits > t.next
    ORDER BY i.number
    LIMIT 1000
) AS r
LEFT JOIN inbox_apps AS s  ON s.turn = -r.app_id AND s.app_id = r.app_id AND s.waiting > 0 AND r.turn > 0
LEFT JOIN apps AS a        ON a.id = r.app_id AND a.deleted_at IS NULL
                              AND a.tz = r.tz AND a.visitor = r.visitor AND a.ipv6_prefix = r.ipv6_prefix
WHERE r.before < @visits::bigint
ORDER BY r.number;

-- name: InboxMove :exec
-- Moves the position in a turn, in the transaction that counts what is between, but for what some
-- apps have there, which is put aside. Fails with SQLSTATE FF004 when it stands elsewhere.
SELECT move_inbox(@turn, @from_next, @to_next, @aside::integer[]);

-- name: InboxNext :one
-- Where the position in a turn stands; no row if its table was emptied, or nothing of what was put
-- aside waits any more.
SELECT next
FROM inbox_turns
WHERE turn = @turn;

-- name: InboxBehind :one
-- How many accepted visits of an app are not counted yet.
SELECT inbox_behind(@app)::bigint AS visits;

-- name: InboxHold :exec
-- Waits until nobody writes to the inbox, and keeps others from it until the end of the
-- transaction.
SELECT pg_advisory_xact_lock(hashtext('footfall.inbox'));
