-- What each connection to a cell asks, and each step of its schema. Cells are made and moved by
-- queries/cells/.

-- name: CellIs :one
-- Whether this database is one of a cell.
SELECT (to_regnamespace('cell') IS NOT NULL)::boolean AS is_cell;

-- name: CellPlace :one
-- The node that has the tables of the cell. Any node can tell.
SELECT n.nodename, n.nodeport
FROM pg_dist_shard AS s
JOIN pg_dist_placement AS p ON p.shardid = s.shardid
JOIN pg_dist_node AS n      ON n.groupid = p.groupid AND n.noderole = 'primary'
WHERE s.logicalrelid = to_regclass('cell.batches');

-- name: CellCoordinator :one
-- The node that makes and changes the tables of all. Any node can tell.
SELECT nodename, nodeport
FROM pg_dist_node
WHERE groupid = 0
  AND noderole = 'primary';

-- name: CellArrive :exec
-- Makes what a node needs to which the tables have come, unless it is there. Fails with SQLSTATE
-- 57P03 on any other node.
SELECT cell.arrive();

-- name: CellLayerPut :exec
-- Keeps the functions and views that a node needs, for the next session that arrives.
INSERT INTO cell.layer (one, texts)
VALUES (true, @texts::text[])
ON CONFLICT (one) DO UPDATE
    SET texts = excluded.texts;

-- name: StepGivesWay :exec
-- Lets a step of the schema fail (FaultBusy) that waits for a lock for longer than that. In a cell
-- this goes to all nodes, which hear of nothing else that a session has set.
SET LOCAL lock_timeout = '100ms';

-- name: NodesAway :one
-- The machines of the cluster that do not answer; none where the database is in no cluster.
SELECT nodes_away()::text[] AS nodes;

-- name: NodesSettle :exec
-- Lets the coordinator of a cell work without the machines that do not answer, and with them again.
SELECT settle_nodes();
