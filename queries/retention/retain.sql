-- Letting go of what need not be kept. What deletes does so through functions that look for
-- themselves whether it may go.

-- name: RetentionDone :one
-- Whether somebody has let go on a day, or on a later one.
SELECT (value >= @day::integer)::boolean AS done
FROM epochs
WHERE name = 'retention';

-- name: RetentionNote :exec
-- Notes that all was let go on a day. Fails where the day has not come yet.
SELECT note_retention(@day);

-- name: RetentionApps :many
-- What each app keeps, and from which day on its visits are kept so far.
SELECT a.id, a.name, a.retain_days, a.forget_days,
       coalesce(k.from_day, 0)::integer    AS from_day,
       coalesce(k.gone_before, 0)::integer AS gone_before,
       is_retention_paused(a.id)::boolean  AS paused
FROM apps AS a
LEFT JOIN visits_kept AS k ON k.app_id = a.id
WHERE a.deleted_at IS NULL
ORDER BY a.name;

-- name: AppCountedBetween :one
-- Whether an app has counted anything from one day to before another.
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
-- Makes the sketches and tops of a day that is over; false if it had them.
SELECT close_day(@day)::boolean AS closed;

-- name: ReturnsPack :one
-- Packs some returns of closed days, by target from one on. How many; 0: no more are left.
SELECT p.packed::bigint AS packed, p.last_page::bigint AS last_page
FROM pack_returns(@from_page::bigint, @n::integer) AS p;

-- name: TopsMissing :many
-- The apps and closed days of which lists of top pages are missing: the deletion of a page took
-- them, or late visits did.
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
-- Makes the lists of top pages of an app on a closed day, where they are missing.
SELECT make_tops(@only_app::integer, @only_day::integer);

-- name: VisitsKeepFrom :exec
-- Lets the visits of an app of days before one go.
SELECT keep_visits_from(@app, @day);

-- name: DayIsKept :one
-- Whether an app keeps its visits of a day. The arrays are a table: apps, and from which day on
-- each keeps.
SELECT EXISTS (
    SELECT
    FROM (SELECT unnest(@apps::integer[]) AS app_id, unnest(@from_days::integer[]) AS from_day) AS k
    JOIN pages AS s ON s.app_id = k.app_id AND s.site_id IS NULL
    JOIN days AS d  ON d.page_id = s.id AND d.day_id = @day::integer
    WHERE d.day_id >= k.from_day
) AS kept;

-- name: VisitsOfDay :many
-- How many rows each app has on a day.
SELECT a.name AS app, count(*) AS visits
FROM visits AS v
JOIN pages AS p ON p.id = v.page_id
JOIN apps AS a  ON a.id = p.app_id
WHERE v.day_id = @day
GROUP BY a.name
ORDER BY a.name;

-- name: VisitsOfAppOnDay :one
-- How many rows an app has on a day.
SELECT count(*)
FROM pages AS p
JOIN visits AS v ON v.page_id = p.id AND v.day_id = @day
WHERE p.app_id = @app_id;

-- name: DayBytes :one
-- How large the partition of a day is, with its indexes.
SELECT coalesce(sum(pg_total_relation_size(p.partition)), 0)::bigint AS bytes
FROM visits_partitions() AS p
WHERE p.day = @day::integer;

-- name: DayDrop :one
-- Drops the partition of a day that is closed; false if it is gone, or an app keeps it, as one does
-- that has just counted for it. Fails (FaultBusy) where it would have to wait.
SELECT drop_visits_day(@day)::boolean AS dropped;

-- name: VisitsDelete :one
-- Deletes some visits of an app on a day that it keeps no longer, by page from one on.
SELECT g.deleted::bigint AS deleted, g.last_page::bigint AS last_page
FROM delete_unkept_visits(@app::integer, @day::integer, @from_page::bigint, @n::integer) AS g;

-- name: VisitsGoneNote :exec
-- An app has no rows left before a day.
UPDATE visits_kept
SET gone_before = @day
WHERE app_id = @app_id
  AND gone_before < @day
  AND from_day >= @day;

-- name: VisitorsUnseen :many
-- Those who have not come to a site since a day, at the site and at its pages, by site and visitor:
-- those who came first are first, so that a row of erased_visitors is written once for many.
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
-- How many there are.
SELECT count(*)
FROM pages AS p
JOIN visitors AS v ON v.page_id = p.id
WHERE p.app_id = @app_id
  AND v.last_day < @before
  AND NOT EXISTS (SELECT FROM visitors AS s WHERE s.page_id = coalesce(p.site_id, p.id) AND s.ip = v.ip AND s.last_day >= @before);

-- name: VisitorsForget :one
-- Forgets those of them who have not come meanwhile. Both arrays are one table.
SELECT forget_visitors(@app, @before, @pages::bigint[], @ips::inet[])::bigint AS forgotten;

-- name: LogLinesForget :one
-- Forgets lines of logs of days that their apps keep no longer; how many rows.
SELECT forget_log_lines()::bigint AS forgotten;
