-- The machines of a Citus cluster, for a cell and for the database that lists the cells. In any other database these functions
-- do nothing.
CREATE FUNCTION nodes_away() RETURNS text[]
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    away text[];
BEGIN
    IF to_regclass('pg_catalog.pg_dist_node') IS NOT NULL THEN
        PERFORM set_config('citus.node_connection_timeout', '1s', true); -- for a machine that hangs
        PERFORM set_config('client_min_messages', 'error', true);
        EXECUTE $q$
            SELECT array_agg(n.nodename || ':' || n.nodeport || CASE n.groupid WHEN 0 THEN ' (the coordinator)' ELSE '' END ORDER BY n.groupid)
            FROM pg_dist_node AS n
            WHERE n.noderole = 'primary'
              AND NOT citus_check_connection_to_node(n.nodename, n.nodeport)
        $q$ INTO away;
    END IF;
    RETURN coalesce(away, '{}');
END
$$;

COMMENT ON FUNCTION nodes_away() IS 'Machines of the cluster that do not respond. Empty if the database is not in a cluster.';

CREATE FUNCTION settle_nodes() RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF to_regproc('cell.settle_nodes') IS NOT NULL THEN
        EXECUTE 'SELECT run_command_on_coordinator(''SELECT cell.settle_nodes(true)'')';
    END IF;
END
$$;

COMMENT ON FUNCTION settle_nodes() IS 'In a cell: makes the coordinator work without machines that do not respond, and include them again once they respond.';

REVOKE ALL ON FUNCTION nodes_away(), settle_nodes() FROM PUBLIC;
