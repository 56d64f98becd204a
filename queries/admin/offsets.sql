-- Offsets, as operators set them.

-- name: OffsetsList :many
-- The offsets of an app, in order of uri.
SELECT uri, hot, pv, uv
FROM offsets
WHERE app_id = @app_id
ORDER BY uri USING ~<~;

-- name: OffsetsSet :one
-- Sets offsets of an app, each target once, and returns how many it had not, and how many were
-- others; those that are as they were are left alone. The arrays are one table.
WITH written AS (
    INSERT INTO offsets AS o (app_id, uri, hot, pv, uv)
    SELECT @app_id::integer, unnest(@uris::text[]), unnest(@hots::bigint[]), unnest(@pvs::bigint[]), unnest(@uvs::bigint[])
    ON CONFLICT (app_id, key) DO UPDATE
        SET hot = excluded.hot, pv = excluded.pv, uv = excluded.uv
        WHERE (o.hot, o.pv, o.uv) <> (excluded.hot, excluded.pv, excluded.uv)
    RETURNING o.xmax = 0 AS is_new
)
SELECT count(*) FILTER (WHERE w.is_new) AS added, count(*) FILTER (WHERE NOT w.is_new) AS changed
FROM written AS w;

-- name: OffsetDelete :exec
-- Deletes the offset of a target. Where there is none, all would be read anew for nothing.
DELETE FROM offsets
WHERE app_id = @app_id
  AND key = page_key(@uri);

-- name: OffsetGet :one
-- The offset of a target; no row if it has none.
SELECT uri, hot, pv, uv
FROM offsets
WHERE app_id = @app_id
  AND key = page_key(@uri);
