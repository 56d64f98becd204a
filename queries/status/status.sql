-- The state of the service, for operators only. No query here reads a table of visits or visitors.

-- name: StatusApps :many
-- Each app that is in this database and not being deleted.
--   hot           the number of page views of all its sites
--   last_day      the last day with visits; 0: none. No time of day is stored for visits.
--   last_day_hot  the number of page views on this day
--   retain_days   for how many days the app keeps visit rows; 0: for ever
--   from_day      the first day whose rows still exist; 0: those of all days exist
--   paused        true if retention deletes nothing of the app, because an import is running or was killed recently
WITH sites AS (
    SELECT s.app_id, c.hot, d.day_id, d.hot AS day_hot, max(d.day_id) OVER (PARTITION BY s.app_id) AS last_day
    FROM pages AS s
    JOIN counters AS c ON c.page_id = s.id
    CROSS JOIN LATERAL (
        SELECT l.day_id, l.hot
        FROM days AS l
        WHERE l.page_id = s.id
        ORDER BY l.day_id DESC
        LIMIT 1
    ) AS d
    WHERE s.site_id IS NULL
)
SELECT a.name,
       coalesce(sum(s.hot), 0)::bigint                                           AS hot,
       coalesce(max(s.last_day), 0)::integer                                     AS last_day,
       coalesce(sum(s.day_hot) FILTER (WHERE s.day_id = s.last_day), 0)::bigint  AS last_day_hot,
       a.retain_days,
       coalesce(max(k.from_day), 0)::integer                                     AS from_day,
       is_retention_paused(a.id)::boolean                                        AS paused
FROM apps AS a
LEFT JOIN visits_kept AS k ON k.app_id = a.id
LEFT JOIN sites AS s       ON s.app_id = a.id
WHERE a.deleted_at IS NULL
  AND a.cell IS NULL
GROUP BY a.id, a.name, a.retain_days
ORDER BY a.name;

-- name: TableSizes :many
-- The sizes of Footfall's tables with their indexes, the largest first. The partitions of visits are one
-- row. Row counts are the server's last estimates.
WITH named AS (
    SELECT n.relname AS name, table_of(n.relname) AS relation
    FROM pg_catalog.pg_class AS n
    WHERE n.relnamespace = 'footfall'::regnamespace
      AND n.relkind IN ('r', 'p', 'v')
)
SELECT coalesce(parent.name, n.name)::text                            AS name,
       sum(greatest(c.reltuples, 0))::bigint                          AS rows,
       sum(pg_relation_size(c.oid) + pg_indexes_size(c.oid))::bigint  AS bytes
FROM named AS n
JOIN pg_catalog.pg_class AS c         ON c.oid = n.relation AND c.relkind = 'r'
LEFT JOIN pg_catalog.pg_inherits AS i ON i.inhrelid = c.oid
LEFT JOIN named AS parent             ON parent.relation = i.inhparent
GROUP BY 1
ORDER BY sum(pg_total_relation_size(c.oid)) DESC;

-- name: WebhooksFailing :many
-- Webhooks with a call that has waited for more than @seconds seconds.
SELECT w.id, a.name AS app, w.since, cardinality(w.waiting) AS waiting
FROM webhooks AS w
JOIN apps AS a ON a.id = w.app_id
WHERE w.waiting <> '{}'
  AND w.since < now() - make_interval(secs => @seconds)
ORDER BY w.id;
