-- Offsets, as operators set them.

-- name: OffsetsList :many
-- The offsets of an app, in order of uri.
SELECT uri, hot, pv, uv
FROM offsets
WHERE app_id = @app_id
  AND (hot > 0 OR told = '{}')
ORDER BY uri USING ~<~;

-- name: OffsetsSet :one
-- Sets offsets of an app, each target once, and returns how many it had not, and how many were
-- others; those that are as they were are left alone. The arrays are one table. Visitors who have been
-- counted were told their numbers by what was there.
WITH written AS (
    INSERT INTO offsets AS o (app_id, uri, hot, pv, uv, told)
    SELECT @app_id::integer, n.uri, n.hot, n.pv, n.uv, coalesce(ARRAY[c.uv, 0], '{}')
    FROM (SELECT unnest(@uris::text[]) AS uri, unnest(@hots::bigint[]) AS hot, unnest(@pvs::bigint[]) AS pv, unnest(@uvs::bigint[]) AS uv) AS n
    LEFT JOIN pages AS p    ON p.app_id = @app_id AND p.key = page_key(n.uri)
    LEFT JOIN counters AS c ON c.page_id = p.id AND c.uv > 0
    ON CONFLICT (app_id, key) DO UPDATE
        SET hot = excluded.hot, pv = excluded.pv, uv = excluded.uv,
            told = CASE WHEN excluded.uv = o.uv OR excluded.told = '{}' THEN o.told ELSE o.told || ARRAY[excluded.told[1], o.uv] END
        WHERE (o.hot, o.pv, o.uv) <> (excluded.hot, excluded.pv, excluded.uv)
    RETURNING o.xmax = 0 AS is_new
)
SELECT count(*) FILTER (WHERE w.is_new) AS added, count(*) FILTER (WHERE NOT w.is_new) AS changed
FROM written AS w;

-- name: OffsetForget :execrows
-- Removes the offset of a target that has visitors, and keeps by what they were told their numbers.
UPDATE offsets AS o
SET hot = 0, pv = 0, uv = 0, told = o.told || ARRAY[c.uv, o.uv]
FROM pages AS p
JOIN counters AS c ON c.page_id = p.id AND c.uv > 0
WHERE o.app_id = @app_id
  AND o.key = page_key(@uri)
  AND p.app_id = o.app_id
  AND p.key = o.key;

-- name: OffsetDelete :exec
-- Deletes the offset of a target. Where there is none, all would be read anew for nothing.
DELETE FROM offsets
WHERE app_id = @app_id
  AND key = page_key(@uri);

-- name: OffsetGet :one
-- The offset of a target, also one that was removed, of which is kept by what numbers were told; no row
-- if it never had one.
SELECT uri, hot, pv, uv, (hot = 0 AND told <> '{}')::boolean AS removed
FROM offsets
WHERE app_id = @app_id
  AND key = page_key(@uri);
