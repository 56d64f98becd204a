-- Offsets: numbers from other counters, which are added to the displayed numbers of targets.

-- name: OffsetsEpoch :one
-- A version of the offsets. It changes with every change of offsets and every start of the server.
-- It also differs between databases, and between a database and its restored copy.
SELECT concat_ws('/', e.value, e.xmin, (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database()),
                      extract(epoch FROM pg_postmaster_start_time()))::text AS epoch
FROM epochs AS e
WHERE e.name = 'offsets';

-- name: OffsetsAll :many
-- All offsets, for the instances that cache them.
SELECT app_id, uri, hot, pv, uv
FROM offsets;
