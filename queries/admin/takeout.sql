-- Exporting an app, and loading it again: see functions/takeout.sql.

-- name: TakeoutSecret :exec
-- Passes the id of the secret with which addresses are hashed to the views of an export, in a setting of the
-- transaction.
SELECT set_config('footfall.takeout_secret', @id::text, true);

-- name: TakeoutNews :exec
-- Passes the sums by tag that are not in tag_days yet to the view takeout_tag_days, as a JSON list of rows in a
-- setting of the transaction.
SELECT set_config('footfall.takeout_news', @rows::text, true);

-- name: TakeoutParts :many
-- The files of an export with their descriptions and columns, and for each a COPY statement that
-- reads the rows of an app. Files that other files refer to are first.
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
ORDER BY array_position('{app,targets,tags}', p.name), p.name;

-- name: TakeoutDays :many
-- The days of an app, whether each has visit rows, and whether it was closed.
SELECT DISTINCT d.day_id AS day, (d.day_id >= coalesce(k.from_day, 0))::boolean AS kept,
       (d.day_id IN (SELECT c.day_id FROM closed_days AS c))::boolean          AS closed
FROM pages AS p
JOIN days AS d              ON d.page_id = p.id
LEFT JOIN visits_kept AS k ON k.app_id = p.app_id
WHERE p.app_id = @app_id
  AND p.site_id IS NULL
ORDER BY d.day_id;

-- name: TagNewsAll :many
-- The tags of recently counted visits of all apps, which are not in tag_days yet.
SELECT verdicts, tags
FROM tag_news;

-- name: DaysToClose :many
-- The given days that have ended in all time zones, and are not closed.
SELECT d.day::integer AS day
FROM (SELECT unnest(@days::integer[]) AS day) AS d
WHERE d.day <= to_char(now() AT TIME ZONE 'UTC' - interval '36 hours', 'YYYYMMDD')::integer
  AND NOT EXISTS (SELECT FROM closed_days AS c WHERE c.day_id = d.day)
ORDER BY d.day;

-- name: DayCloseNow :exec
-- Closes a day that has ended in all time zones.
SELECT close_day(@day::integer);

-- name: LoadBegin :exec
-- Creates the temporary tables for the files of an export.
SELECT begin_load();

-- name: LoadCopy :one
-- The COPY statement that writes a file of an export with these columns. It writes to the temporary table that
-- begin_load() has created for the file. If there is no such table, it writes directly to the final table. A file
-- without a takeout_ view, as during a move, has the name and columns of its table.
SELECT CASE
           WHEN to_regclass('pg_temp.loaded_' || @name::text) IS NOT NULL
           THEN format('COPY %I (%s) FROM STDIN (FORMAT csv, HEADER)', 'loaded_' || @name::text, c.names)
           ELSE format('COPY %s (%s) FROM STDIN (FORMAT csv, HEADER)',
                       table_of(CASE @name::text WHEN 'returns' THEN 'open_returns' ELSE @name::text END), c.straight)
       END::text AS writing
FROM (
    SELECT string_agg(quote_ident(n.name), ', ' ORDER BY n.place) AS names,
           string_agg(CASE
                          WHEN to_regclass('takeout_' || @name::text) IS NULL THEN quote_ident(n.name)
                          WHEN n.name = 'target'  THEN CASE @name::text WHEN 'days' THEN 'page_id, site_id' ELSE 'page_id' END
                          WHEN n.name = 'day'     THEN 'day_id'
                          WHEN n.name = 'tag'     THEN 'tag_id'
                          WHEN n.name = 'visitor' THEN 'ip'
                          ELSE quote_ident(n.name)
                      END, ', ' ORDER BY n.place) AS straight
    FROM unnest(@columns::text[]) WITH ORDINALITY AS n (name, place)
) AS c;

-- name: LoadNumber :exec
-- Assigns new ids to the copied pages, sites and tags.
SELECT number_load();

-- name: LoadedNumbers :many
-- The ids of pages and sites (or of tags, if @tags is true) in the files of an export, in order, after the id @after.
--   old   the id in the files
--   new   the id in this database
--   site  for a page, the new id of its site; 0: the row is a site
SELECT old::bigint AS old, new::bigint AS new, site::bigint AS site
FROM loaded_numbers(@tags, @after, @portion);

-- name: AppLoad :exec
-- Creates an app from the copied rows.
SELECT load_app(@name::text);
