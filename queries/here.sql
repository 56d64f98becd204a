-- Who is on a site now.

-- name: HereAdd :exec
-- Notes who came to which site of late; the arrays are one table. Rows go that are older than those
-- that are told, unless another instance is about it. A site may have been deleted meanwhile.
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
-- How many visitors came to some sites of an app within the last five minutes. Sites without any are
-- left out.
SELECT p.uri, count(DISTINCT v.visitor)::bigint AS visitors
FROM pages AS p
JOIN here AS h ON h.site_id = p.id AND h.came_at > now() - here_lasts()
CROSS JOIN LATERAL unnest(h.visitors) AS v (visitor)
WHERE p.app_id = @app_id
  AND p.key IN (SELECT page_key(unnest(@sites::text[])))
  AND p.site_id IS NULL
GROUP BY p.uri;
