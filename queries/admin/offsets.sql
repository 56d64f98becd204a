-- Offsets: numbers counted by another tool, which are added to the numbers counted here.

-- name: OffsetsList :many
-- The offsets of an app, in order of uri, and the part of each offset that is from imported history. Removed offsets
-- are left out.
SELECT uri, hot, pv, uv, history_hot, history_pv, history_uv
FROM offsets
WHERE app_id = @app_id
  AND (hot > 0 OR told = '{}')
ORDER BY uri USING ~<~;

-- name: OffsetsPut :many
-- Sets the part of each given offset that is set by hand, or removes this part if by_hand is false. With of_history,
-- also sets the part from imported history for all pages and sites. The arrays are the columns of one table, with a
-- row for each offset. Returns at most 20 of these offsets. New and changed offsets are first, then sites before
-- pages, then the largest changes. Each row also has the numbers of all new, changed and unchanged offsets.
SELECT p.uri::text AS uri, p.was_hot::bigint AS was_hot, p.was_pv::bigint AS was_pv, p.was_uv::bigint AS was_uv,
       p.hot::bigint AS hot, p.pv::bigint AS pv, p.uv::bigint AS uv, p.is_new::boolean AS is_new,
       (p.is_new OR (p.was_hot, p.was_pv, p.was_uv) <> (p.hot, p.pv, p.uv))::boolean AS differs,
       count(*) FILTER (WHERE p.is_new) OVER () AS added,
       count(*) FILTER (WHERE NOT p.is_new AND (p.was_hot, p.was_pv, p.was_uv) <> (p.hot, p.pv, p.uv)) OVER () AS changed,
       count(*) FILTER (WHERE NOT p.is_new AND (p.was_hot, p.was_pv, p.was_uv) = (p.hot, p.pv, p.uv)) OVER () AS same
FROM put_offsets(@app_id::integer, @uris::text[], @hots::bigint[], @pvs::bigint[], @uvs::bigint[], @by_hand::boolean, @of_history::boolean) AS p
ORDER BY differs DESC, strpos(p.uri, '/') > 0, abs(p.hot - p.was_hot) DESC, p.uri
LIMIT 20;

-- name: OffsetDelete :exec
-- Deletes the offset of a page or site. Only called if there is an offset, because every instance reads all offsets
-- again after a deletion.
DELETE FROM offsets
WHERE app_id = @app_id
  AND key = page_key(@uri);

-- name: OffsetGet :one
-- The offset of a page or site; no row: it has none. removed is true for a removed offset. Its row is kept if visitors
-- have already been shown ranks that include the offset.
SELECT uri, hot, pv, uv, history_hot, history_pv, history_uv, (hot = 0 AND told <> '{}')::boolean AS removed
FROM offsets
WHERE app_id = @app_id
  AND key = page_key(@uri);
