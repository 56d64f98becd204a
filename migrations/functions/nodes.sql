-- The machines of a cluster of Citus, of a cell and of the database that knows the cells. In any other
-- database these do nothing.
CREATE FUNCTION nodes_away() RETURNS text[]
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    away text[];
BEGIN
    IF to_regclass('pg_catalog.pg_dist_node') IS NOT NULL THEN
        PERFORM set_config('citus.node_connection_timeout', '1s', true); -- of a machine that hangs
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

COMMENT ON FUNCTION nodes_away() IS 'The machines of the cluster that do not answer this one. Empty in a database that is in no cluster.';

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

COMMENT ON FUNCTION settle_nodes() IS 'In a cell: lets the coordinator work without the machines that do not answer, and with them again once they do.';

REVOKE ALL ON FUNCTION nodes_away(), settle_nodes() FROM PUBLIC;
