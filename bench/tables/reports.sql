-- What `bench reports` asks, in the words of somebody who has nothing but the schema report, and
-- what it compares the answers with.

-- name: AskAs :exec
-- Has no more rights than those who read reports, until the session ends.
SET ROLE footfall_report;

-- name: ReportSites :many
-- The sites of an app, those with most visits first.
SELECT *
FROM report.sites
WHERE app = @app
ORDER BY hot DESC;

-- name: ReportPage :one
-- One page and its sums.
SELECT *
FROM report.pages
WHERE app = @app
  AND uri = @uri;

-- name: ReportPagesUnder :many
-- Those under a path, as the index has them.
SELECT *
FROM report.pages
WHERE app = @app
  AND uri LIKE @path::text || '%'
ORDER BY uri USING ~<~
LIMIT 50;

-- name: ReportPagesByHot :many
-- Reads every page of the site.
SELECT *
FROM report.pages
WHERE app = @app
  AND site = @site
ORDER BY hot DESC
LIMIT 20;

-- name: ReportDays :many
-- The daily numbers of a target.
SELECT *
FROM report.days
WHERE app = @app
  AND target = @target
  AND day_id BETWEEN @from_day AND @to_day
ORDER BY day_id;

-- name: ReportVisitorsToday :many
-- Visitors of today.
SELECT *
FROM report.visitors_today
WHERE app = @app
  AND target = @target
LIMIT 100;

-- name: ReportCountToday :one
-- How many visitors came today.
SELECT count(*)
FROM report.visitors_today
WHERE app = @app
  AND target = @target;

-- name: ReportVisits :many
-- Visits of pages.
SELECT *
FROM report.visits
WHERE app = @app
  AND uri = @uri
  AND day_id = @day
ORDER BY visitor
LIMIT 100;

-- name: ReportRank :many
-- Who was visitor number so and so.
SELECT *
FROM report.ranks
WHERE app = @app
  AND target = @target
  AND rank = @rank;

-- name: ReportWhoCame :many
-- The latest visitors of 30 days.
SELECT w.day_id::integer AS day, w.visitor::text AS visitor, w.rank::bigint AS rank
FROM report.who_came(@app::text, @target::text, @from_day::integer, @to_day::integer) AS w;

-- name: ReportTopPages :many
-- The first pages of a range of days.
SELECT t.uri::text AS uri, t.pv::bigint AS pv, t.new_visitors::bigint AS new_visitors, t.hot::bigint AS hot, t.uniques::bigint AS uniques
FROM report.top_pages(@app::text, @from_day::integer, @to_day::integer, @n::integer, @by::text, sqlc.narg(site)::text) AS t;

-- name: ReportUniques :one
-- Uniques of a range of days.
SELECT u.uniques::bigint AS uniques, u.exact::boolean AS exact, u.standard_error::double precision AS standard_error
FROM report.uniques(@app::text, @target::text, @from_day::integer, @to_day::integer) AS u;

-- name: UniquesCounted :one
-- The plainest way.
SELECT count(DISTINCT ip)
FROM visits
WHERE page_id = @page_id
  AND day_id BETWEEN @from_day AND @to_day;

-- name: AppsByPages :many
-- The apps that have counted something, and how many targets they have.
SELECT a.id, a.name, count(*) AS targets
FROM apps AS a
JOIN pages AS p ON p.app_id = a.id
GROUP BY a.id;

-- name: HotOfApp :one
-- How many visits an app has counted.
SELECT coalesce(sum(c.hot), 0)::bigint AS hot
FROM apps AS a
JOIN pages AS s ON s.app_id = a.id
JOIN counters AS c ON c.page_id = s.id
WHERE a.name = @app
  AND s.site_id IS NULL;

-- name: DaysOfApp :many
-- The days on which an app counted, in order.
SELECT DISTINCT d.day_id
FROM pages AS s
JOIN days AS d ON d.page_id = s.id
WHERE s.app_id = @app_id
  AND s.site_id IS NULL
ORDER BY d.day_id;

-- name: VisitsOfDay :many
-- Who came to which page of an app on a day.
SELECT p.uri, v.ip
FROM visits AS v
JOIN pages AS p ON p.id = v.page_id
WHERE p.app_id = @app_id
  AND p.site_id IS NOT NULL
  AND v.day_id = @day
LIMIT 300000;

-- name: VisitorsOfTargets :many
-- How many visitors each target of an app has.
SELECT p.uri, c.uv
FROM pages AS p
JOIN counters AS c ON c.page_id = p.id
WHERE p.app_id = @app_id;

-- name: DayOver :one
-- The last day that close_day closes.
SELECT to_char(now() AT TIME ZONE 'UTC' - interval '36 hours', 'YYYYMMDD')::integer AS day;

-- name: ClosedVacuum :exec
-- What autovacuum does in its own time.
VACUUM (ANALYZE) sketches, tops, open_returns, packed_returns;
