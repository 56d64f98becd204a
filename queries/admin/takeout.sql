-- An app is exported, and loaded again: see functions/takeout.sql.

-- name: TakeoutSecret :exec
-- Says, for the transaction, that addresses are hashed on the way with the secret that has this id.
SELECT set_config('footfall.takeout_secret', @id::text, true);

-- name: TakeoutParts :many
-- The files of an export, the app first, with what is known of them, their columns, and how they are
-- read of an app.
SELECT p.name::text                                                                      AS name,
       obj_description(p.oid, 'pg_class')::text                                          AS about,
       (p.name = ANY ('{erased_visitors,erased_visits,ignored,people,sketches,visitors,visits}'))::boolean AS of_visitors,
       p.columns::text[]                                                                 AS columns,
       format('COPY (SELECT %s FROM %I WHERE app_id = %s) TO STDOUT (FORMAT csv, HEADER)',
              array_to_string(p.columns, ', '), 'takeout_' || p.name, @app_id::integer)::text AS reading
FROM (
    SELECT c.oid, substr(c.relname, 9) AS name,
           ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 1 ORDER BY a.attnum) AS columns
    FROM pg_catalog.pg_class AS c
    WHERE c.relnamespace = 'footfall'::regnamespace
      AND c.relkind = 'v'
      AND starts_with(c.relname, 'takeout_')
) AS p
ORDER BY p.name <> 'app', p.name;

-- name: TakeoutDays :many
-- The days of an app, which of them have rows of visits, and which were closed.
SELECT DISTINCT d.day_id AS day, (d.day_id >= coalesce(k.from_day, 0))::boolean AS kept,
       (d.day_id IN (SELECT c.day_id FROM closed_days AS c))::boolean          AS closed
FROM pages AS p
JOIN days AS d              ON d.page_id = p.id
LEFT JOIN visits_kept AS k ON k.app_id = p.app_id
WHERE p.app_id = @app_id
  AND p.site_id IS NULL
ORDER BY d.day_id;

-- name: TagNewsAll :many
-- What batches have brought that tag_days does not have yet, of all apps.
SELECT verdicts, tags
FROM tag_news;

-- name: TagIDs :many
-- The tags of an app.
SELECT id
FROM tags
WHERE app_id = @app_id;

-- name: DaysToClose :many
-- Those of some days that are over everywhere, and were not closed.
SELECT d.day::integer AS day
FROM (SELECT unnest(@days::integer[]) AS day) AS d
WHERE d.day <= to_char(now() AT TIME ZONE 'UTC' - interval '36 hours', 'YYYYMMDD')::integer
  AND NOT EXISTS (SELECT FROM closed_days AS c WHERE c.day_id = d.day)
ORDER BY d.day;

-- name: DayCloseNow :exec
-- Closes a day that is over everywhere.
SELECT close_day(@day::integer);

-- name: LoadBegin :exec
-- Makes what the files of an export are copied to.
SELECT begin_load();

-- name: LoadCopy :one
-- How a file of an export is copied, which has these columns.
SELECT format('COPY %I (%s) FROM STDIN (FORMAT csv, HEADER)', 'loaded_' || @name::text,
              (SELECT string_agg(quote_ident(c.column_name), ', ') FROM (SELECT unnest(@columns::text[]) AS column_name) AS c))::text AS writing;

-- name: AppLoad :exec
-- Makes an app of what was copied.
SELECT load_app(@name::text);
