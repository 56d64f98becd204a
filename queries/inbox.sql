-- The inbox: visits that are accepted now and counted a moment later.

-- name: InboxPut :exec
-- Writes visits of an app to the table that is open, in a transaction that BatchBegin has begun. The
-- last five arrays are one table.
SELECT put_in_inbox(@app, @tz, @visitor, @ipv6_prefix::smallint, @uris::text[], @pages::integer[], @days::integer[],
                    @new_pages::integer[], @ips::inet[], sqlc.narg(ids)::text[]);

-- name: InboxTurns :many
-- The turns of which anything is not counted yet, and last the one that is open: how many visits
-- wait in each, and since when the first of them (1970: none does). kept is how many visits the
-- closed ones hold together, counted ones included.
SELECT t.turn, t.slot, (t.closed_at IS NULL)::boolean AS is_open, t.next,
       (CASE WHEN t.closed_at IS NULL THEN coalesce(w.visits, 0) ELSE t.accepted - t.counted - t.dropped END)::bigint AS waiting,
       coalesce(w.oldest, 'epoch')::timestamptz                       AS oldest,
       (SELECT coalesce(sum(k.accepted), 0) FROM inbox_turns AS k)::bigint AS kept
FROM inbox_turns AS t
CROSS JOIN LATERAL (
    SELECT sum(i.visits) AS visits, min(i.received_at) AS oldest
    FROM inbox AS i
    WHERE i.slot = t.slot
      AND i.turn = t.turn
      AND i.number >= t.next >> 16
) AS w
WHERE NOT t.done
ORDER BY t.turn;

-- name: InboxDrainTry :one
-- Makes this transaction the one that counts what is in the inbox; false: another one does.
SELECT pg_try_advisory_xact_lock(hashtext('footfall.drain_inbox'))::boolean AS mine;

-- name: InboxClose :one
-- Closes the table that is open, and opens another: the turn that has ended; 0: it has no visits;
-- -1: none is free.
SELECT turn_inbox()::bigint AS turn;

-- name: InboxEmpty :one
-- Empties the tables that were read to their end, if nobody uses them; how many.
SELECT empty_inbox()::integer AS emptied;

-- name: InboxRead :many
-- The next rows of a closed turn from a number on, as many as have about so many visits, at least
-- one; with whether their app still tells days and visitors apart as it did, and from which day on
-- it keeps visits.
SELECT r.number, r.app_id, r.tz, r.visitor, r.ipv6_prefix, r.uris, r.pages, r.days, r.new_pages, r.ips,
       coalesce(r.ids, '{}')::text[]            AS ids,
       (a.id IS NOT NULL)::boolean              AS counts_so,
       coalesce(k.from_day, 0)::integer         AS from_day
FROM (
    SELECT i.*, sum(i.visits) OVER (ORDER BY i.number) - i.visits AS before
    FROM inbox AS i
    WHERE i.slot = @slot
      AND i.turn = @turn
      AND i.number >= @from_number
    ORDER BY i.number
    LIMIT 1000
) AS r
LEFT JOIN apps AS a        ON a.id = r.app_id AND a.deleted_at IS NULL
                              AND a.tz = r.tz AND a.visitor = r.visitor AND a.ipv6_prefix = r.ipv6_prefix
LEFT JOIN visits_kept AS k ON k.app_id = r.app_id
WHERE r.before < @visits::bigint
ORDER BY r.number;

-- name: InboxMove :exec
-- Moves the position of a turn in the transaction that counts what is between. Fails with SQLSTATE
-- FF004 when it stands elsewhere.
SELECT move_inbox(@turn, @from_next, @to_next, @counted, @dropped);

-- name: InboxNext :one
-- Where the position of a turn stands; no row if its table was emptied.
SELECT next
FROM inbox_turns
WHERE turn = @turn;

-- name: InboxBehind :one
-- How many accepted visits of an app are not counted yet.
SELECT inbox_behind(@app)::bigint AS visits;

-- name: InboxHold :exec
-- Waits until nobody writes to the inbox, and keeps others from it until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtext('footfall.inbox'));
