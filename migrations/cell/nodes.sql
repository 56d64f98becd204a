-- Disables nodes that do not respond, so that the coordinator works without them. If rejoin is set, it also enables disabled
-- nodes that respond again. Citus sends each change of the tables to all nodes, and refuses the change if a node does not
-- respond. A disabled node is left out. When it rejoins, it gets the changes that it has missed, which takes a second or more.
-- The node with the tables is never disabled. Commands of `cell` run this function in every database of a cluster, as a
-- temporary function.
CREATE OR REPLACE FUNCTION cell.settle_nodes(rejoin boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET citus.node_connection_timeout = '1s' -- for a machine that hangs
SET lock_timeout = '1s'                  -- a move keeps the list of nodes locked
SET client_min_messages = error          -- a node that does not respond is not worth a message
AS $$
DECLARE
    node record;
BEGIN
    FOR node IN
        SELECT *
        FROM (
            SELECT n.nodeid, n.nodename AS host, n.nodeport AS port, n.isactive, citus_check_connection_to_node(n.nodename, n.nodeport) AS answers
            FROM pg_dist_node AS n
            WHERE n.noderole = 'primary'
              AND n.groupid <> 0
              AND (n.isactive OR rejoin)
              AND NOT EXISTS (SELECT FROM pg_dist_placement AS p WHERE p.groupid = n.groupid)
            OFFSET 0
        ) AS n
        WHERE n.isactive <> n.answers
    LOOP
        BEGIN
            IF node.answers THEN
                PERFORM citus_activate_node(node.host, node.port);
            ELSE -- citus_disable_node() refuses the first worker, or waits for the other nodes
                UPDATE pg_dist_node SET isactive = false WHERE nodeid = node.nodeid;
            END IF;
        EXCEPTION WHEN OTHERS THEN
            RAISE DEBUG '%', SQLERRM; -- the change that needs the node reports the error
        END;
    END LOOP;
END
$$;

REVOKE ALL ON FUNCTION cell.settle_nodes(boolean) FROM PUBLIC;
