-- Queries for connecting to a cell (a database on a Citus cluster), and for migrating its schema.
-- Queries that create and move cells are in queries/cells/.

-- name: CellIs :one
-- Whether this database belongs to a cell.
SELECT (to_regnamespace('cell') IS NOT NULL)::boolean AS is_cell;

-- name: CellPlace :one
-- The node that has the cell's tables. Works on any node.
SELECT n.nodename, n.nodeport
FROM pg_dist_shard AS s
JOIN pg_dist_placement AS p ON p.shardid = s.shardid
JOIN pg_dist_node AS n      ON n.groupid = p.groupid AND n.noderole = 'primary'
WHERE s.logicalrelid = to_regclass('cell.batches');

-- name: CellCoordinator :one
-- The node that creates and changes all tables. Works on any node.
SELECT nodename, nodeport
FROM pg_dist_node
WHERE groupid = 0
  AND noderole = 'primary';

-- name: CellArrive :exec
-- Creates the functions and views that a node needs after the tables have moved to it, unless they
-- exist. Fails with SQLSTATE 57P03 on a node without the tables.
SELECT cell.arrive();

-- name: CellLayerPut :exec
-- Stores the functions and views that a node needs, for the next session that runs CellArrive.
INSERT INTO cell.layer (one, texts)
VALUES (true, @texts::text[])
ON CONFLICT (one) DO UPDATE
    SET texts = excluded.texts;

-- name: StepGivesWay :exec
-- Makes a step of the schema migration fail (FaultBusy) if it waits for a lock for more than 100
-- ms. In a cell, this setting reaches all nodes, because it belongs to the transaction. Settings of
-- the session do not reach them.
SET LOCAL lock_timeout = '100ms';

-- name: NodesAway :one
-- The nodes of the cluster that do not respond. Empty if the database is not in a cluster.
SELECT nodes_away()::text[] AS nodes;

-- name: NodesSettle :exec
-- Makes the coordinator of a cell work without the nodes that do not respond, and include them
-- again when they do.
SELECT settle_nodes();
