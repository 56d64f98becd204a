-- Cells: each is a database of a Citus cluster, with its tables on one of the nodes (servers). See
-- migrations/cell/cell.sql. Most of these queries run on the coordinator.

-- name: CellMake :exec
-- Creates the schema of a cell's tables, before the steps that create the tables.
CREATE SCHEMA IF NOT EXISTS cell;

-- name: CellMove :exec
-- Moves the tables of the cell to another node.
SELECT citus_schema_move('cell'::regnamespace, @host::text, @port::integer, 'force_logical');

-- name: CellLook :one
-- The size of a cell, the number of its apps, the standbys of the node with its tables, and whether
-- the cell is being moved. Names of standbys are empty unless the role is a superuser or a member of
-- pg_read_all_stats.
SELECT pg_database_size(current_database())::bigint                                      AS bytes,
       (SELECT count(*) FROM apps WHERE deleted_at IS NULL AND cell IS NULL)::integer    AS apps,
       ARRAY(
           SELECT concat_ws(' ', coalesce(host(r.client_addr), nullif(r.application_name, '')), r.sync_state)
           FROM pg_catalog.pg_stat_replication AS r
           LEFT JOIN pg_catalog.pg_replication_slots AS s ON s.active_pid = r.pid
           WHERE s.slot_type IS DISTINCT FROM 'logical' -- logical slots are used for moving cells
       )::text[]                                                                         AS standbys,
       EXISTS (
           SELECT
           FROM pg_catalog.pg_replication_slots
           WHERE slot_type = 'logical'
             AND database = current_database()
             AND active
       )::boolean                                                                        AS moves;

-- name: CellToday :one
-- The number of visits that the apps of a cell have counted today. Each app's day is the day in its
-- time zone.
SELECT coalesce(sum(d.hot), 0)::bigint AS hot
FROM apps AS a
JOIN pages AS s ON s.app_id = a.id AND s.site_id IS NULL
JOIN days AS d  ON d.page_id = s.id AND d.day_id = to_char(now() AT TIME ZONE a.tz, 'YYYYMMDD')::integer
WHERE a.deleted_at IS NULL;

-- name: NodeLook :one
-- The disk space that a node uses for databases and WAL.
SELECT (sum(pg_database_size(oid)) + (SELECT coalesce(sum(size), 0) FROM pg_ls_waldir()))::bigint AS bytes
FROM pg_catalog.pg_database;

-- name: ClusterNodes :many
-- The nodes that this database knows, the coordinator first. is_here is true for the node of this
-- session. isactive is true for a node that responded when it was last checked.
SELECT n.nodeid, n.nodename, n.nodeport, (n.groupid = l.groupid)::boolean AS is_here, n.isactive
FROM pg_dist_node AS n
CROSS JOIN pg_dist_local_group AS l
WHERE n.noderole = 'primary'
ORDER BY n.groupid;

-- name: ClusterBehind :many
-- The active nodes that do not have the present list of nodes yet. Citus sends it to them within some
-- seconds, once they respond.
SELECT nodename AS host, nodeport AS port
FROM pg_dist_node
WHERE noderole = 'primary'
  AND NOT metadatasynced
  AND isactive
ORDER BY groupid;

-- name: ClusterUnreached :many
-- The pairs of nodes whose first node cannot connect to the second one. Runs on the coordinator.
SELECT from_nodename::text AS from_host, from_nodeport::integer AS from_port, to_nodename::text AS to_host, to_nodeport::integer AS to_port
FROM citus_check_cluster_node_health()
WHERE result IS NOT TRUE;

-- name: ClusterBegin :exec
-- Makes this node the coordinator, and stores the address at which the other nodes find it.
SELECT citus_set_coordinator_host(@host::text, @port::integer);

-- name: ClusterJoin :exec
-- Adds a node unless it already is in the cluster.
SELECT citus_add_node(@host::text, @port::integer);

-- name: NodeReplace :exec
-- Gives a node another address, even while it is in use.
SELECT citus_update_node(@id::integer, @host::text, @port::integer, true, 5000);

-- name: NodeForget :exec
-- Deletes Citus's records of data that earlier moves have left on a node. Runs before the node is
-- removed. Otherwise Citus could not clean up this data, and would block all moves.
DELETE FROM pg_dist_cleanup
WHERE node_group_id IN (
    SELECT groupid
    FROM pg_dist_node
    WHERE nodeid = @id
);

-- name: NodeRemove :exec
-- Removes a node that has no tables.
SELECT citus_remove_node(nodename, nodeport)
FROM pg_dist_node
WHERE nodeid = @id;

-- name: NodeItself :one
-- The address at which this node connects to itself, whether this connection works, and whether the
-- node is a standby.
SELECT current_setting('citus.local_hostname')::text AS host,
       current_setting('port')::integer              AS port,
       citus_check_connection_to_node(current_setting('citus.local_hostname'), current_setting('port')::integer)::boolean AS connects,
       pg_is_in_recovery()                           AS is_standby;

-- name: ClusterAlone :exec
-- Allows the coordinator to have tables.
SELECT citus_set_node_property(@host::text, @port::integer, 'shouldhaveshards', true);

-- name: DatabasesLike :many
-- The databases of this server whose names start with @beginning, by name.
SELECT datname::text AS name
FROM pg_catalog.pg_database
WHERE starts_with(datname, @beginning)
ORDER BY datname;

-- name: CellRelease :exec
-- Makes services of many cells disconnect from a cell that is being dropped, and stay disconnected
-- until this session ends.
SELECT pg_advisory_lock(hashtext('footfall.release_cell'), hashtext(@database::text));

-- name: CellsServed :many
-- Like DatabasesLike, without cells that are being dropped.
SELECT d.datname::text AS name
FROM pg_catalog.pg_database AS d
WHERE starts_with(d.datname, @beginning)
  AND NOT EXISTS (
      SELECT
      FROM pg_catalog.pg_locks AS l
      WHERE l.locktype = 'advisory'
        AND l.classid::bigint = hashtext('footfall.release_cell')::bigint & 4294967295
        AND l.objid::bigint = hashtext(d.datname)::bigint & 4294967295
        AND l.objsubid = 2)
ORDER BY d.datname;
