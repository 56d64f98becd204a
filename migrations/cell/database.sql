-- Prepares the database of a cell on every node before the node joins the cluster. With the settings below, Citus distributes
-- triggers, a worker may empty its own tables, and the catalog shows a worker's tables. This file may be run again.
SET citus.enable_ddl_propagation = off;
CREATE EXTENSION IF NOT EXISTS citus;
DO $$
BEGIN
    EXECUTE format('ALTER DATABASE %I SET citus.enable_unsafe_triggers = on', current_database());
    EXECUTE format('ALTER DATABASE %I SET citus.enable_manual_changes_to_shards = on', current_database());
    EXECUTE format('ALTER DATABASE %I SET citus.override_table_visibility = off', current_database());
END
$$;
