-- Queries of the daily task (retention), which deletes data that apps no longer keep. The functions that delete rows
-- check themselves whether the rows may be deleted.

-- name: RetentionDone :one
-- Returns whether the daily task has completed on this day or a later one.
SELECT (value >= @day::integer)::boolean AS done
FROM epochs
WHERE name = 'retention';

-- name: RetentionNote :exec
-- Records that the daily task has completed on @day. Fails if @day is more than one day after the present day in the
-- time zone where days begin last.
SELECT note_retention(@day);

-- name: RetentionApps :many
-- Each app's retention settings, and the first day whose visits the app keeps so far.
SELECT a.id, a.name, a.retain_days, a.forget_days,
       coalesce(k.from_day, 0)::integer    AS from_day,
       coalesce(k.gone_before, 0)::integer AS gone_before,
       is_retention_paused(a.id)::boolean  AS paused
FROM apps AS a
LEFT JOIN visits_kept AS k ON k.app_id = a.id
WHERE a.deleted_at IS NULL
ORDER BY a.name;

-- name: AppCountedBetween :one
-- Whether an app has counted visits on @from_day or later, but before the day @before.
SELECT EXISTS (
    SELECT
    FROM pages AS s
    JOIN days AS d ON d.page_id = s.id
    WHERE s.app_id = @app_id
      AND s.site_id IS NULL
      AND d.day_id >= @from_day
      AND d.day_id < @before
) AS counted;

-- name: DayClose :one
-- Computes the sketches (for estimating unique visitors) and the lists of top pages of a day that has ended. Returns
-- false if the day was already closed.
SELECT close_day(@day)::boolean AS closed;

-- name: ReturnsPack :one
-- Packs some rows of open_returns about closed days. These rows have numbers of returning visitors. Starts with the page
-- or site @from_page, in order of id. Returns the number of packed rows (0: none are left) and the last page or site.
SELECT p.packed::bigint AS packed, p.last_page::bigint AS last_page
FROM pack_returns(@from_page::bigint, @n::integer) AS p;

-- name: TopsMissing :many
-- The apps and closed days whose lists of top pages are missing, because a page was deleted or late
-- visits arrived.
SELECT DISTINCT s.app_id::integer AS app_id, d.day_id::integer AS day
FROM pages AS s
JOIN days AS d        ON d.page_id = s.id
JOIN closed_days AS c ON c.day_id = d.day_id
WHERE s.site_id IS NULL
  AND d.hot > 0
  AND (NOT EXISTS (SELECT FROM tops AS t WHERE t.app_id = s.app_id AND t.site_id = s.id AND t.day_id = d.day_id)
       OR NOT EXISTS (SELECT FROM tops AS t WHERE t.app_id = s.app_id AND t.site_id = 0 AND t.day_id = d.day_id))
ORDER BY app_id, day;

-- name: TopsMake :exec
-- Computes the missing lists of top pages of an app on a closed day.
SELECT make_tops(@only_app::integer, @only_day::integer);

-- name: VisitsKeepFrom :exec
-- Allows the deletion of an app's visits of days before @day.
SELECT keep_visits_from(@app, @day);

-- name: DayIsKept :one
-- Whether any app still keeps its visits of a day. The arrays are the columns of one table: the app, and
-- the first day whose visits this app keeps.
SELECT EXISTS (
    SELECT
    FROM (SELECT unnest(@apps::integer[]) AS app_id, unnest(@from_days::integer[]) AS from_day) AS k
    JOIN pages AS s ON s.app_id = k.app_id AND s.site_id IS NULL
    JOIN days AS d  ON d.page_id = s.id AND d.day_id = @day::integer
    WHERE d.day_id >= k.from_day
) AS kept;

-- name: VisitsOfDay :many
-- The number of visit rows of each app on a day.
SELECT a.name AS app, count(*) AS visits
FROM visits AS v
JOIN pages AS p ON p.id = v.page_id
JOIN apps AS a  ON a.id = p.app_id
WHERE v.day_id = @day
GROUP BY a.name
ORDER BY a.name;

-- name: VisitsOfAppOnDay :one
-- The number of an app's visit rows on a day.
SELECT count(*)
FROM pages AS p
JOIN visits AS v ON v.page_id = p.id AND v.day_id = @day
WHERE p.app_id = @app_id;

-- name: DayBytes :one
-- The size of a day's partition with its indexes.
SELECT coalesce(sum(pg_total_relation_size(p.partition)), 0)::bigint AS bytes
FROM visits_partitions() AS p
WHERE p.day = @day::integer;

-- name: DayDrop :one
-- Drops the partition of a closed day. Returns false if the partition does not exist, or if an app keeps visits of
-- the day, for example because it has just counted a late visit. Fails (FaultBusy) instead of waiting for more than
-- some seconds.
SELECT drop_visits_day(@day)::boolean AS dropped;

-- name: VisitsDelete :one
-- Deletes some visits of an app on a day that the app no longer keeps, in order of page from the id @from_page on.
SELECT g.deleted::bigint AS deleted, g.last_page::bigint AS last_page
FROM delete_unkept_visits(@app::integer, @day::integer, @from_page::bigint, @n::integer) AS g;

-- name: VisitsGoneNote :exec
-- Records that an app has no visit rows before a day.
UPDATE visits_kept
SET gone_before = @day
WHERE app_id = @app_id
  AND gone_before < @day
  AND from_day >= @day;

-- name: VisitorsUnseen :many
-- Rows of visitors who have not visited a site since the day @before. Each visitor has one row for
-- the site, and one for each visited page. The rows are in order of rank at the site. A row of
-- erased_visitors covers 256 consecutive ranks, so in this order it is written once for many
-- visitors.
SELECT coalesce(p.site_id, p.id)::bigint AS site_id, v.page_id, v.ip
FROM pages AS p
JOIN visitors AS v      ON v.page_id = p.id
LEFT JOIN visitors AS s ON s.page_id = coalesce(p.site_id, p.id) AND s.ip = v.ip
WHERE p.app_id = @app_id
  AND v.last_day < @before
  AND (s.last_day < @before) IS NOT FALSE
ORDER BY coalesce(p.site_id, p.id), s.rank, v.ip
LIMIT @n;

-- name: VisitorsUnseenCount :one
-- The number of rows that VisitorsUnseen would return without a limit.
SELECT count(*)
FROM pages AS p
JOIN visitors AS v ON v.page_id = p.id
WHERE p.app_id = @app_id
  AND v.last_day < @before
  AND NOT EXISTS (SELECT FROM visitors AS s WHERE s.page_id = coalesce(p.site_id, p.id) AND s.ip = v.ip AND s.last_day >= @before);

-- name: VisitorsForget :one
-- Deletes the listed visitors, except those who have visited again since they were listed. The arrays are the columns
-- of one table: a page or site, and a visitor there.
SELECT forget_visitors(@app, @before, @pages::bigint[], @ips::inet[])::bigint AS forgotten;

-- name: LogLinesForget :one
-- Deletes the records of counted log lines on days that their apps no longer keep. Returns the number of hours with
-- such lines.
SELECT forget_log_lines()::bigint AS forgotten;
