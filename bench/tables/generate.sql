-- What `bench generate` fills beside COPY, and what it tells of the tables afterwards.

-- name: TargetsInOrder :many
-- The targets of an app in the order in which they were made.
SELECT id, uri
FROM pages
WHERE app_id = @app_id
ORDER BY id;

-- name: TallyPut :exec
-- How many pages an app got on its last day that brought any, for its limit.
INSERT INTO page_tallies (app_id, day_id, today)
VALUES (@app_id, @day_id, @today);

-- name: TablesVacuum :exec
-- What autovacuum does in its own time.
VACUUM (ANALYZE) pages, counters, visitors, visits, days, returns;

-- name: TableSizes :many
-- The tables of Footfall, the largest first; the days of visits as one.
SELECT coalesce(parent.relname, c.relname)::text       AS name,
       sum(greatest(c.reltuples, 0))::bigint           AS rows,
       sum(pg_relation_size(c.oid))::bigint            AS heap,
       sum(pg_indexes_size(c.oid))::bigint             AS indexes
FROM pg_catalog.pg_class AS c
LEFT JOIN pg_catalog.pg_inherits AS i   ON i.inhrelid = c.oid
LEFT JOIN pg_catalog.pg_class AS parent ON parent.oid = i.inhparent
WHERE c.relnamespace = 'footfall'::regnamespace
  AND c.relkind = 'r'
GROUP BY 1
ORDER BY sum(pg_total_relation_size(c.oid)) DESC;
