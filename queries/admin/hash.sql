-- Hashing the addresses of an app's visitors: see functions/hash_visitors.sql.

-- name: AppHold :one
-- Stops instances from counting for an app for as long as hashing its visitors may take.
UPDATE apps
SET held_until = now() + interval '30 seconds' + interval '0.1 milliseconds' * (
        SELECT coalesce(sum(c.uv), 0)
        FROM pages AS p
        JOIN counters AS c ON c.page_id = p.id
        WHERE p.app_id = @id)
WHERE id = @id
RETURNING held_until;

-- name: AppIsHeld :one
-- Returns whether counting for an app is paused now.
SELECT coalesce(held_until > clock_timestamp(), false)::boolean AS held
FROM apps
WHERE id = @id;

-- name: AppLetGo :exec
-- Ends the pause of counting for an app (held_until) that this command has set. @before is the end of an earlier
-- pause by another command, which applies again (null: instances count again immediately). Changes nothing if another
-- command has set a pause in the meantime.
UPDATE apps
SET held_until = sqlc.narg(before)
WHERE id = @id
  AND held_until = sqlc.narg(held);

-- name: AppHashed :exec
-- Ends the pause of counting for an app whose hashes are stored. hashed_from is the first day whose sketches (for
-- estimating unique visitors) were made from hashes. The sketches of earlier days were made from addresses.
UPDATE apps
SET held_until  = NULL,
    hashed_from = @hashed_from
WHERE id = @id;

-- name: AddressesList :one
-- Lists the addresses of an app's visitors in a temporary table, and returns their number.
SELECT list_addresses(@app_id::integer)::bigint AS addresses;

-- name: AddressesListed :many
-- The next addresses in the list of AddressesList: at most @most, after the place @after.
SELECT a.ip::inet AS ip
FROM listed_addresses(@after::bigint, @most::integer) AS a (ip);

-- name: HashesNote :exec
-- Stores the hashes of addresses for VisitorsHash. The arrays are the two columns of a table: each address and its
-- hash.
SELECT note_hashes(@ips::inet[], @hashes::inet[]);

-- name: VisitorsHash :one
-- Replaces the addresses of an app's visitors with the stored hashes, in all counted rows. Returns hashed_from for
-- AppHashed.
SELECT hash_visitors(@app_id::integer)::integer AS hashed_from;

-- name: InboxAddresses :many
-- The rows of the inbox with visits of an app that are not counted yet, and their visitors.
SELECT number, ips
FROM inbox
WHERE app_id = @app_id;

-- name: InboxHash :exec
-- Replaces addresses by hashes in a row of the inbox.
UPDATE inbox
SET ips     = @ips,
    visitor = @visitor
WHERE number = @number;
