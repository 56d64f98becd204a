-- History: numbers that other tools have counted by day.

-- name: HistoryOfPageDelete :execrows
-- Deletes the history of a deleted page. The history of its site remains.
DELETE FROM history AS h
USING history_days AS d
WHERE d.id = h.day
  AND d.app_id = @app_id
  AND d.site = split_part(@uri, '/', 1)
  AND h.uri = @uri;

-- name: HistoryOfPage :one
-- The number of days that other tools have counted for a page.
SELECT count(*) AS days
FROM history_days AS d
JOIN history AS h ON h.day = d.id AND h.uri = @uri
WHERE d.app_id = @app_id
  AND d.site = split_part(@uri, '/', 1);

-- name: HistoryRead :exec
-- Collects lines of an import, which HistoryPut stores.
SELECT read_history(@sites::text[], @uris::text[], @days::integer[], @page_views::bigint[], @visits::bigint[], @visitors::bigint[],
                    @new_visitors::bigint[], @by_visit::bigint[], @by_visitor::bigint[]);

-- name: HistoryPut :one
-- Stores the lines that HistoryRead has collected.
SELECT coalesce(h.import_id, 0)::integer AS import_id, coalesce(h.rows, 0)::bigint AS rows, coalesce(h.added, 0)::bigint AS added,
       coalesce(h.replaced, 0)::bigint AS replaced, coalesce(h.same, 0)::bigint AS same,
       coalesce(h.first_day, 0)::integer AS first_day, coalesce(h.last_day, 0)::integer AS last_day, coalesce(h.hidden, 0)::bigint AS hidden,
       coalesce(h.others, 0)::bigint AS others, coalesce(h.other, '')::text AS other, coalesce(h.other_site, '')::text AS other_site,
       coalesce(h.other_first, 0)::integer AS other_first, coalesce(h.other_last, 0)::integer AS other_last
FROM put_history(@app_id::integer, @source::text, @files::text[], @are_parts::boolean, @to_totals::boolean) AS h;

-- name: HistoryFirst :many
-- The first 20 rows of the import of this transaction, in order of day. -1 means unknown.
SELECT h.uri::text AS uri, h.day_id::integer AS day_id, coalesce(h.page_views, -1)::bigint AS page_views, coalesce(h.visits, -1)::bigint AS visits,
       coalesce(h.visitors, -1)::bigint AS visitors, coalesce(h.new_visitors, -1)::bigint AS new_visitors
FROM first_history(20) AS h;

-- name: HistoryInTotals :one
-- Whether offsets of an app contain history (imported numbers). Reads only offsets, because the tables of history may
-- be read only after the app is locked.
SELECT EXISTS (SELECT FROM offsets AS o WHERE o.app_id = @app_id AND o.history_hot > 0) AS is;

-- name: HistoryToday :one
-- The current day in the time zone of an app.
SELECT today(tz) AS today
FROM apps
WHERE id = @app_id;

-- name: HistoryExists :one
-- Whether an app has any history.
SELECT EXISTS (SELECT FROM history_days AS d WHERE d.app_id = @app_id) AS is;

-- name: HistoryList :many
-- The imports of an app, the latest first.
SELECT i.id, i.imported_at, i.source, i.files, min(d.day_id)::integer AS first_day, max(d.day_id)::integer AS last_day, count(*) AS days,
       string_agg(DISTINCT d.site, ', ' ORDER BY d.site)::text AS sites
FROM history_imports AS i
JOIN history_days AS d ON d.app_id = i.app_id AND d.import_id = i.id
WHERE i.app_id = @app_id
GROUP BY i.id, i.imported_at, i.source, i.files -- in a cell, history_imports is a view without a key, so each column must be listed
ORDER BY i.id DESC;

-- name: HistoryRemove :one
-- Removes an import, and returns its source and the number of its days. No row if the import does not
-- exist.
DELETE FROM history_imports AS i
WHERE i.app_id = @app_id
  AND i.id = @id
RETURNING i.source, (SELECT count(*) FROM history_days AS d WHERE d.app_id = i.app_id AND d.import_id = i.id) AS days;
