-- Addresses that an app has counted by are hashed: see functions/hash_visitors.sql.

-- name: AppHold :one
-- Keeps instances from counting for an app for as long as hashing its visitors may take.
UPDATE apps
SET held_until = now() + interval '30 seconds' + interval '0.1 milliseconds' * (
        SELECT coalesce(sum(c.uv), 0)
        FROM pages AS p
        JOIN counters AS c ON c.page_id = p.id
        WHERE p.app_id = @id)
WHERE id = @id
RETURNING held_until;

-- name: AppIsHeld :one
SELECT coalesce(held_until > clock_timestamp(), false)::boolean AS held
FROM apps
WHERE id = @id;

-- name: AppLetGo :exec
-- Lets them count again, or when another command has said before; unless one has held the app since.
UPDATE apps
SET held_until = sqlc.narg(before)
WHERE id = @id
  AND held_until = sqlc.narg(held);

-- name: AppHashed :exec
-- Likewise, once hashes are there. hashed_from: the first day whose sketches are of hashes, where those of others are of addresses.
UPDATE apps
SET held_until  = NULL,
    hashed_from = @hashed_from
WHERE id = @id;

-- name: AddressesList :one
-- Lists the addresses of an app's visitors, and returns how many there are.
SELECT list_addresses(@app_id::integer)::bigint AS addresses;

-- name: AddressesListed :many
-- Some of them.
SELECT a.ip::inet AS ip
FROM listed_addresses(@after::bigint, @most::integer) AS a (ip);

-- name: HashesNote :exec
-- Notes their hashes. Both arrays are one table.
SELECT note_hashes(@ips::inet[], @hashes::inet[]);

-- name: VisitorsHash :one
-- Puts them in place of the addresses in all rows that are counted, and returns hashed_from.
SELECT hash_visitors(@app_id::integer)::integer AS hashed_from;

-- name: InboxAddresses :many
-- What waits for an app, with whom.
SELECT number, ips
FROM inbox
WHERE app_id = @app_id;

-- name: InboxHash :exec
-- Puts hashes in place of the addresses of what waits.
UPDATE inbox
SET ips     = @ips,
    visitor = @visitor
WHERE number = @number;
