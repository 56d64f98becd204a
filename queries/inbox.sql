-- The inbox: visits that are accepted now and counted a moment later.

-- name: InboxPut :exec
-- Writes visits of an app to the table that is open, in a transaction that BatchBegin has begun.
-- The last five arrays are one table.
SELECT put_in_inbox(@app, @tz, @visitor, @ipv6_prefix::smallint, @uris::text[], @pages::integer[], @days::integer[],
                    @new_pages::integer[], @ips::inet[], sqlc.narg(ids)::text[]);

-- name: InboxLook :one
-- What is in the inbox: its open turn, with how many rows and visits; how many visits of closed
-- turns are not counted yet, how many of them are of apps that are held, and which apps these are;
-- how many visits closed turns hold together, counted ones included; how many were ever accepted;
-- and since when the first visit waits (1970: none does). No row where none of its tables takes
-- visits.
SELECT o.turn, w.rows, w.visits, c.waiting::bigint AS waiting, c.held::bigint AS held, c.held_apps::integer[] AS held_apps,
       (SELECT coalesce(sum(t.accepted), 0) FROM inbox_turns AS t)::bigint AS kept,
       (o.accepted_before + w.visits)::bigint                              AS accepted,
       coalesce(first.received_at, w.oldest, 'epoch')::timestamptz         AS oldest
FROM inbox_turns AS o
CROSS JOIN LATERAL (
    SELECT coalesce(sum(a.waiting), 0) AS waiting, coalesce(sum(a.waiting) FILTER (WHERE a.held), 0) AS held,
           coalesce(array_agg(DISTINCT a.app_id) FILTER (WHERE a.held), '{}') AS held_apps
    FROM inbox_apps AS a
    WHERE a.waiting > 0
) AS c
CROSS JOIN LATERAL (
    SELECT count(*)::bigint AS rows, coalesce(sum(i.visits), 0)::bigint AS visits, min(i.received_at) AS oldest
    FROM inbox AS i
    WHERE i.slot = o.slot
      AND i.turn = o.turn
) AS w
LEFT JOIN LATERAL (
    SELECT i.received_at
    FROM (SELECT min(a.turn) AS turn FROM inbox_apps AS a WHERE a.waiting > 0) AS f
    JOIN inbox_turns AS t ON t.turn = f.turn
    JOIN inbox_apps AS a  ON a.turn = f.turn AND a.waiting > 0
    JOIN inbox AS i       ON i.slot = t.slot AND i.turn = f.turn AND i.app_id = a.app_id AND i.number >= a.next >> 16
    ORDER BY i.number
    LIMIT 1
) AS first ON true
WHERE o.closed_at IS NULL;

-- name: InboxUncounted :one
-- How many visits wait in closed turns up to one: of an app, and of all.
SELECT coalesce(sum(a.waiting) FILTER (WHERE a.app_id = @app), 0)::bigint AS of_app,
       coalesce(sum(a.waiting), 0)::bigint                               AS of_all
FROM inbox_apps AS a
WHERE a.waiting > 0
  AND a.turn <= @turn;

-- name: InboxTurnNext :one
-- The first closed turn behind one in which visits of any app wait but of some; no row: none.
SELECT t.turn, t.slot
FROM inbox_turns AS t
WHERE t.turn = (
    SELECT min(a.turn)
    FROM inbox_apps AS a
    WHERE a.waiting > 0
      AND a.turn > @after
      AND a.app_id <> ALL (@but::integer[]));

-- name: InboxHeld :many
-- Those of some apps that somebody holds, as while a visitor is erased: nobody waits for that here.
SELECT a.id::integer AS app_id
FROM unnest(@apps::integer[]) AS a (id)
WHERE NOT pg_try_advisory_xact_lock_shared(hashtext('footfall.past_days'), a.id);

-- name: InboxClose :one
-- Closes the table that is open, and opens another: the turn that has ended; 0: it has nothing.
SELECT turn_inbox()::bigint AS turn;

-- name: InboxEmpty :one
-- Empties the tables that were read to their end, if nobody uses them, and no transaction younger
-- than so many seconds has a snapshot in which they were not; how many.
SELECT empty_inbox(@beside_younger_than::integer)::integer AS emptied;

-- name: InboxDeleteCounted :exec
-- Deletes the rows of an app of which every visit was counted, or passed by. Nothing else deletes
-- rows, and a table is not emptied while visits of any app wait there, or a dump reads it. A dump
-- keeps what its snapshot has.
DELETE FROM inbox AS i
USING inbox_apps AS a
WHERE a.app_id = @app
  AND i.app_id = a.app_id
  AND i.turn = a.turn
  AND i.number * 65536 + i.visits <= a.next;

-- name: InboxNoteHeld :exec
-- Notes which apps counting leaves out for now.
SELECT note_held_in_inbox(@apps::integer[]);

-- name: InboxMoveHeld :one
-- Empties the tables in which visits of held apps wait, and of no others, by moving these, if
-- nobody uses them, and at least so many visits were counted for each that waits; how many.
SELECT move_held_in_inbox(@least_cleared::real)::integer AS emptied;

-- name: InboxPassGone :one
-- Passes by what waits in a closed turn, but of which no rows are left; how many visits.
SELECT pass_gone_in_inbox(@turn)::bigint AS visits;

-- name: InboxRead :many
-- The next rows of a closed turn from a number on that are not counted to their end, of all apps
-- but some, as many as have about so many visits, at least one; with the position of their app,
-- whether that still tells days and visitors apart as it did, and from which day on it keeps
-- visits.
SELECT r.number, r.app_id, r.tz, r.visitor, r.ipv6_prefix, r.uris, r.pages, r.days, r.new_pages, r.ips,
       coalesce(r.ids, '{}')::text[]            AS ids,
       r.next::bigint                           AS next,
       (a.id IS NOT NULL)::boolean              AS counts_so,
       coalesce(k.from_day, 0)::integer         AS from_day
FROM (
    SELECT i.*, s.next, sum(i.visits) OVER (ORDER BY i.number) - i.visits AS before
    FROM inbox AS i
    JOIN inbox_apps AS s ON s.turn = i.turn AND s.app_id = i.app_id AND s.waiting > 0
    WHERE i.slot = @slot
      AND i.turn = @turn
      AND i.number >= @from_number
      AND i.number * 65536 + i.visits > s.next
      AND i.app_id <> ALL (@but::integer[])
    ORDER BY i.number
    LIMIT 1000
) AS r
LEFT JOIN apps AS a        ON a.id = r.app_id AND a.deleted_at IS NULL
                              AND a.tz = r.tz AND a.visitor = r.visitor AND a.ipv6_prefix = r.ipv6_prefix
LEFT JOIN visits_kept AS k ON k.app_id = r.app_id
WHERE r.before < @visits::bigint
ORDER BY r.number;

-- name: InboxMove :exec
-- Moves the position of an app in a turn, in the transaction that counts what is between. Fails
-- with SQLSTATE FF004 when it stands elsewhere.
SELECT move_inbox(@turn, @app, @from_next, @to_next, @counted, @dropped);

-- name: InboxNext :one
-- Where the position of an app in a turn stands; no row if its table was emptied.
SELECT next
FROM inbox_apps
WHERE turn = @turn
  AND app_id = @app;

-- name: InboxBehind :one
-- How many accepted visits of an app are not counted yet.
SELECT inbox_behind(@app)::bigint AS visits;

-- name: InboxHold :exec
-- Waits until nobody writes to the inbox, and keeps others from it until the end of the
-- transaction.
SELECT pg_advisory_xact_lock(hashtext('footfall.inbox'));
