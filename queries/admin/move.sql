-- Moving an app to another database: see admin/move.go.

-- name: MoveBegin :exec
-- Marks an app as moving to a cell. Instances stop counting for the app once they have read its settings
-- again.
UPDATE apps
SET moving_to = @cell
WHERE id = @id;

-- name: MoveTakeBack :exec
-- Cancels the move of an app, unless the app has already left this database, or is moving to another cell.
UPDATE apps
SET moving_to = NULL
WHERE id = @id
  AND cell IS NULL
  AND moving_to = @cell;

-- name: MoveBlocked :one
-- The reason why an app cannot move to this database; '' if it can.
SELECT CASE
           WHEN EXISTS (SELECT FROM apps AS a WHERE a.name = @name AND a.cell IS NULL)
           THEN 'the cell already has an app with this name'
           WHEN EXISTS (SELECT FROM apps AS a WHERE a.name = @name AND a.moving_to IS NOT NULL)
           THEN 'an earlier move of this app away from the cell was interrupted: run its command again first'
           WHEN EXISTS (SELECT FROM apps AS a WHERE a.cell IS NULL AND a.secret_id <> @secret_id::bytea)
           THEN 'its apps hash visitors with another secret, and a service can use only one secret'
           WHEN @daily::boolean AND EXISTS (SELECT FROM apps AS a WHERE a.cell IS NULL AND a.visitor = 'daily')
           THEN 'it has apps with --visitor daily, which already use other daily keys'
           WHEN EXISTS (SELECT FROM webhooks AS w WHERE w.id = ANY (@webhooks::integer[]))
           THEN 'it has webhooks with the same numbers, and calls are signed with the number: remove the app''s webhooks, and add them again after the move'
           ELSE ''
       END::text AS why;

-- name: MoveNumbers :one
-- The ids of an app's webhooks and logs, and whether an import of logs is running.
SELECT ARRAY(SELECT w.id FROM webhooks AS w WHERE w.app_id = @app_id ORDER BY w.id)::integer[] AS webhooks,
       ARRAY(SELECT l.id FROM logs AS l WHERE l.app_id = @app_id ORDER BY l.id)::bigint[]      AS logs,
       is_retention_paused(@app_id)                                                            AS importing;

-- name: LogNumbers :many
-- Allocates @logs new ids for logs.
SELECT nextval('logs_id_seq')::bigint AS id
FROM generate_series(1, @logs::integer);

-- name: MoveTables :many
-- The tables in @names, which an export leaves out.
--   columns   the columns to copy
--   numbered  true if the rows get new ids when they are written
--   reading   a COPY statement that reads the rows of an app
-- Webhooks keep their ids, because their calls are signed with these ids. Logs get new ids from LogNumbers, because
-- other rows refer to the ids of logs. The table positions stores the id of a key for calls that send visits. The COPY
-- statement replaces this id by the key's name, and MoveCalls then replaces the name by the new id.
SELECT t.name::text AS name, t.columns::text[] AS columns, (t.number IS NOT NULL)::boolean AS numbered,
       format('COPY (SELECT %s FROM %I AS t WHERE app_id = %s %s) TO STDOUT (FORMAT csv, HEADER)',
              (SELECT string_agg(CASE
                                     WHEN t.name = 'positions' AND c.name = 'source'
                                     THEN $$coalesce((SELECT 'calls of key ' || k.name FROM keys AS k
                                                      WHERE t.source = 'calls of key ' || k.id), t.source) AS source$$
                                     ELSE quote_ident(c.name)
                                 END, ', ' ORDER BY c.place) FROM unnest(t.columns) WITH ORDINALITY AS c (name, place)),
              t.name, @app_id::integer, 'ORDER BY ' || t.number)::text AS reading
FROM (
    SELECT n.name, n.place,
           array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE NOT a.numbers) AS columns,
           min(a.attname::text) FILTER (WHERE a.numbers)                             AS number
    FROM unnest(@names::text[]) WITH ORDINALITY AS n (name, place)
    CROSS JOIN LATERAL (
        SELECT a.attname, a.attnum,
               a.attname = 'number' OR a.attname = 'id' AND n.name NOT IN ('webhooks', 'logs', 'visit_ids') AS numbers
        FROM pg_catalog.pg_attribute AS a
        WHERE a.attrelid = table_of(n.name)
          AND a.attnum > 0
          AND NOT a.attisdropped
          AND a.attgenerated = ''
    ) AS a
    GROUP BY n.name, n.place
) AS t
ORDER BY t.place;

-- name: MoveCalls :exec
-- Replaces the name of a key by the key's id in this database. Rows of positions about calls that send visits contain
-- this name after they are copied (see MoveTables).
UPDATE positions AS p
SET source = 'calls of key ' || k.id
FROM keys AS k
WHERE p.app_id = @app_id
  AND k.app_id = p.app_id
  AND p.source = 'calls of key ' || k.name;

-- name: CarryBegin :exec
-- Creates the temporary table for copied rows that get new ids in this database.
SELECT begin_carry(@name, (SELECT string_agg(quote_ident(c.name), ', ' ORDER BY c.place) FROM unnest(@columns::text[]) WITH ORDINALITY AS c (name, place)));

-- name: CarryEnd :exec
-- Writes the rows in the temporary table of CarryBegin to their final table.
SELECT end_carry(@name, (SELECT string_agg(quote_ident(c.name), ', ' ORDER BY c.place) FROM unnest(@columns::text[]) WITH ORDINALITY AS c (name, place)));

-- name: MoveStub :one
-- If the app was in this database before, a row with its name still exists, to which accounts have rights. Renames
-- this row, so that the name is free. Returns the id of the row, or 0 if there is none.
WITH stub AS (
    UPDATE apps
    SET name = 'moved-' || id
    WHERE name = @name
      AND cell IS NOT NULL
    RETURNING id
)
SELECT coalesce((SELECT s.id FROM stub AS s), 0)::integer AS id;

-- name: MoveStubRights :exec
-- Transfers the rights of accounts from the row that MoveStub renamed to the app that has arrived.
UPDATE account_apps
SET app_id = @id
WHERE app_id = @stub;

-- name: MoveStubDelete :exec
-- Deletes the row that remained of an app that was in this database before.
DELETE FROM apps
WHERE id = @stub;

-- name: MoveNoted :exec
-- Records that the app has arrived, and that no row of its inbox has been copied yet. Also stores the key of the
-- app's logs.
WITH keyed AS (
    UPDATE apps AS a
    SET log_key = @log_key
    WHERE a.id = @id
)
INSERT INTO positions (app_id, source, part)
VALUES (@id, 'moved', @part::text);

-- name: MovedHere :one
-- The app that arrived from another database, with the number of the last row of its inbox there that has been
-- copied.
SELECT a.id, p.next
FROM apps AS a
JOIN positions AS p ON p.app_id = a.id
WHERE a.name = @name
  AND a.cell IS NULL
  AND p.source = 'moved'
  AND p.part = @part::text;

-- name: MovedUpTo :execrows
-- Records @next, the number of the last copied row of the app's inbox in the other database. @was is the number that
-- the caller has read. No row is changed if another command has recorded a later row in the meantime.
UPDATE positions
SET next = @next
WHERE app_id = @app_id
  AND source = 'moved'
  AND part = @part::text
  AND next = @was;

-- name: MovedPartly :one
-- Whether an app that arrived from another database still has rows in that database, for example after an
-- interrupted move.
SELECT EXISTS (SELECT FROM positions AS p WHERE p.app_id = @app_id AND p.source = 'moved');

-- name: MovedForget :exec
-- Deletes the position up to which the inbox of a moved app has been copied.
DELETE FROM positions
WHERE app_id = @app_id
  AND source = 'moved'
  AND part = @part::text;

-- name: WebhooksGoOn :exec
-- Makes new webhooks get ids greater than all existing ids of webhooks.
SELECT setval('webhooks_id_seq', greatest((SELECT max(w.id) FROM webhooks AS w), nextval('webhooks_id_seq')));

-- name: MoveDailyBeside :one
-- Whether any app in this database, except the app @id, hashes visitors with a different key for each day.
SELECT EXISTS (SELECT FROM apps AS a WHERE a.id <> @id AND a.cell IS NULL AND a.visitor = 'daily')::boolean AS beside;

-- name: DayKeyPut :exec
-- Sets the key for hashing visitors of a day. The caller has checked with MoveDailyBeside that no other app in this
-- database uses such keys.
INSERT INTO day_keys (day_id, key)
VALUES (@day, @key)
ON CONFLICT (day_id) DO UPDATE
    SET key = excluded.key;

-- name: MoveLeave :exec
-- Makes the name of an app that has moved refer to the cell that has the app now.
UPDATE apps
SET cell = moving_to
WHERE id = @id;

-- name: WaitingLast :one
-- The number of the last row of the inbox that waits for an app; 0: there is none.
SELECT coalesce(max(number), 0)::bigint AS number
FROM inbox
WHERE app_id = @app_id;

-- name: WaitingDelete :exec
-- Deletes the visits of an app that wait in the inbox, after all of them have been copied.
DELETE FROM inbox
WHERE app_id = @app_id;

-- name: MoveEnd :exec
-- Completes the move of an app to a cell. In this database, only the app's name and the rights of accounts remain.
UPDATE apps
SET moving_to = NULL,
    log_key   = NULL
WHERE id = @id;

-- name: MoveWaits :exec
-- Allows this transaction to be idle for any time while the other database is read or written. The transaction
-- started with EraseBegin, whose network settings still detect a vanished client.
SELECT set_config('idle_in_transaction_session_timeout', '0', true);
