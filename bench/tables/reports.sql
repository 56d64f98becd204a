-- The command `bench reports` runs these statements.

-- name: VisitsOfDay :many
-- Returns up to 300,000 visits of pages of an app, as pairs of page and visitor. They are from the eighth-last day with
-- visits, because earlier runs of the benchmark have added visits to later days.
SELECT p.uri, v.ip
FROM visits AS v
JOIN pages AS p ON p.id = v.page_id
JOIN apps AS a  ON a.id = p.app_id AND a.name = @app
WHERE p.site_id IS NOT NULL
  AND v.day_id = (SELECT min(l.day_id) FROM (SELECT DISTINCT d.day_id FROM days AS d ORDER BY d.day_id DESC LIMIT 8) AS l)
ORDER BY p.uri, v.ip
LIMIT 300000;

-- name: AppsThatCounted :many
-- Returns the names of the apps that have counted visits.
SELECT name
FROM apps AS a
WHERE EXISTS (SELECT FROM pages AS p WHERE p.app_id = a.id);

-- name: SitesOfApp :many
-- Returns the sites of an app, in the order of their creation.
SELECT s.uri
FROM pages AS s
JOIN apps AS a ON a.id = s.app_id AND a.name = @app
WHERE s.site_id IS NULL
ORDER BY s.id;
