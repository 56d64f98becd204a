-- The visitors that are on a site now.

-- name: HereAdd :exec
-- Stores recent visitors of sites. The values at one index of the arrays are a site and a visitor.
-- Also deletes rows that are too old to be reported, unless another instance is deleting them.
-- Ignores sites that have been deleted in the meantime.
WITH gone AS (
    DELETE FROM here AS h
    WHERE h.came_at < now() - here_lasts()
      AND (SELECT pg_try_advisory_xact_lock(hashtext('footfall.here')))
)
INSERT INTO here (site_id, visitors)
SELECT n.site_id, array_agg(n.visitor)
FROM (
    SELECT unnest(@sites::bigint[])  AS site_id,
           unnest(@visitors::inet[]) AS visitor
) AS n
WHERE EXISTS (SELECT FROM pages AS p WHERE p.id = n.site_id)
GROUP BY n.site_id;

-- name: HereGet :many
-- The number of visitors of each given site within the last five minutes. Sites without visitors
-- are left out.
SELECT p.uri, count(DISTINCT v.visitor)::bigint AS visitors
FROM pages AS p
JOIN here AS h ON h.site_id = p.id AND h.came_at > now() - here_lasts()
CROSS JOIN LATERAL unnest(h.visitors) AS v (visitor)
WHERE p.app_id = @app_id
  AND p.key IN (SELECT page_key(unnest(@sites::text[])))
  AND p.site_id IS NULL
GROUP BY p.uri;
