-- A cell is a database that exists on all nodes of a Citus cluster. The migration steps have created its tables in the schema
-- cell. The tables are on one worker, and Citus can move them to another. Sessions use the worker with the tables. There, the
-- schema footfall has all functions, and a view of each table under the table's name. So a session there finds the same names
-- as on a single PostgreSQL, and no statement goes through Citus.
--
-- This file runs on the coordinator after the migration steps, and the coordinator applies it to all nodes. It may be run
-- again.
DO $$
DECLARE
    name text;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_dist_shard AS s WHERE s.logicalrelid = 'cell.batches'::regclass) THEN
        SET LOCAL citus.propagate_set_commands = local;
        SET LOCAL session_replication_role = replica; -- no trigger runs while rows from a pg_restore move to a node
        PERFORM citus_schema_distribute('cell');
        SET LOCAL session_replication_role = origin;
        FOR name IN SELECT pg_get_functiondef(p.oid) FROM pg_proc AS p WHERE p.pronamespace = 'cell'::regnamespace LOOP
            EXECUTE name; -- creates the function on the other nodes, too
        END LOOP;
    END IF;
    FOREACH name IN ARRAY ARRAY['footfall_app', 'footfall_report'] LOOP -- creates the roles on all nodes, not only on the coordinator
        PERFORM run_command_on_all_nodes(format('DO $do$ BEGIN SET LOCAL citus.enable_ddl_propagation = off; CREATE ROLE %I NOLOGIN;
            EXCEPTION WHEN duplicate_object THEN NULL; END $do$', name), false, false);
    END LOOP;
END
$$;

GRANT USAGE ON SCHEMA cell TO PUBLIC;

CREATE TABLE IF NOT EXISTS cell.layer (
    one   boolean PRIMARY KEY DEFAULT true CHECK (one),
    texts text[]  NOT NULL
);

COMMENT ON TABLE  cell.layer       IS 'Functions and views that a worker needs in addition to the tables. When this row is written, workers create them again.';
COMMENT ON COLUMN cell.layer.texts IS 'The files of functions/ and report/, in the order in which they are run.';

-- Returns the name that a table has on its worker.
CREATE OR REPLACE FUNCTION cell.shard(named name) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT format('cell.%I', named || '_' || s.shardid)
    FROM pg_dist_shard AS s
    WHERE s.logicalrelid = to_regclass(format('cell.%I', named))
$$;

-- Returns whether this node has the tables. The function is in PL/pgSQL, which plans a query once per session. An SQL function
-- would be planned at each call. This planning took longer than all other work that a batch does only in a cell.
CREATE OR REPLACE FUNCTION cell.is_here() RETURNS boolean
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN EXISTS (
        SELECT
        FROM pg_dist_shard AS s
        JOIN pg_dist_placement AS p   ON p.shardid = s.shardid
        JOIN pg_dist_local_group AS l ON l.groupid = p.groupid
        WHERE s.logicalrelid = 'cell.batches'::regclass);
END
$$;

-- Runs before each statement that writes, so that no transaction writes to tables that have moved to another node. Such a move
-- takes the lock of lock_shard_metadata exclusively, on all nodes, once it has copied all but the last changes. It holds the
-- lock until the tables are on the other node. If a transaction takes the lock before the move, the move waits until the
-- transaction ends. If a transaction takes the lock after the move, it finds the tables gone, and its session ends as if the
-- server had stopped. The client then connects again, and is led to the node with the tables.
CREATE OR REPLACE FUNCTION cell.must_be_here() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF current_setting('footfall.here', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
        PERFORM lock_shard_metadata(5, TG_ARGV[0]::bigint[]); -- ShareLock
        IF NOT cell.is_here() THEN
            PERFORM pg_terminate_backend(pg_backend_pid(), 0::bigint);
            PERFORM pg_sleep(1);
        END IF;
        PERFORM set_config('footfall.here', pg_current_xact_id()::text, true); -- once per transaction is enough
    END IF;
    RETURN NULL;
END
$$;

-- Creates the view that shows a table under its name in the schema footfall.
CREATE OR REPLACE FUNCTION cell.show(named name) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET citus.enable_ddl_propagation = off
AS $$
BEGIN
    EXECUTE format('CREATE VIEW footfall.%I AS SELECT *, ctid, xmin, xmax FROM %s', named, cell.shard(named));
END
$$;

-- Runs a command that creates or drops tables. Only the coordinator can do this, on all nodes in one transaction. Counting
-- waits from the moment when this transaction has its locks until it has committed everywhere. On all nodes, the transaction
-- gives way to other sessions: it waits for a lock for only a tenth of the time after which they check for a deadlock. If it
-- cannot get its locks, the function tries again a little later. After five attempts, the function fails with 55P03, so that
-- the caller can try again. Nodes that do not respond are skipped.
CREATE OR REPLACE FUNCTION cell.on_coordinator(command text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    done record;
BEGIN
    PERFORM run_command_on_coordinator('SELECT cell.settle_nodes(false)');
    FOR try IN 1..5 LOOP
        SELECT * INTO STRICT done FROM run_command_on_coordinator(format(
            'DO $do$ BEGIN SET LOCAL citus.propagate_set_commands = local; SET LOCAL lock_timeout = ''100ms''; %s END $do$', command));
        IF done.success THEN
            RETURN;
        END IF;
        PERFORM pg_sleep(0.05 * try);
    END LOOP;
    RAISE EXCEPTION 'on the coordinator: %', done.result USING ERRCODE = '55P03';
END
$$;

CREATE OR REPLACE FUNCTION cell.make_visits_day(day integer) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF to_regclass('cell.visits_' || day) IS NULL THEN -- if the table exists, an earlier call could not create the view
        PERFORM cell.on_coordinator(format('CREATE TABLE cell.visits_%1$s (LIKE cell.visits INCLUDING ALL);
            ALTER TABLE cell.visits ATTACH PARTITION cell.visits_%1$s FOR VALUES IN (%1$s);', day));
    END IF;
    PERFORM cell.show(('visits_' || day)::name);
END
$$;

CREATE OR REPLACE FUNCTION cell.drop_visits_day(day integer) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET citus.enable_ddl_propagation = off
AS $$
BEGIN
    PERFORM cell.on_coordinator(format('ALTER TABLE cell.visits DETACH PARTITION cell.visits_%1$s;
        DROP TABLE cell.visits_%1$s;', day));
    EXECUTE format('DROP VIEW IF EXISTS footfall.visits_%s', day); -- the view may have been dropped with the table
END
$$;

-- Ends the clients' sessions on a node that had the tables before, because these sessions would read outdated rows. A node that
-- never had the tables is left alone, because users may have other sessions there. Returns the last values of the node's
-- sequences in the schema footfall.
CREATE OR REPLACE FUNCTION cell.leave() RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF to_regnamespace('footfall') IS NOT NULL AND NOT cell.is_here() THEN
        PERFORM pg_terminate_backend(a.pid, 1000::bigint)
        FROM pg_stat_activity AS a
        WHERE a.datname = current_database()
          AND a.backend_type = 'client backend'
          AND a.pid <> pg_backend_pid()
          AND a.application_name NOT LIKE 'citus%';
    END IF;
    RETURN (SELECT coalesce(jsonb_object_agg(s.sequencename, s.last_value), '{}') FROM pg_sequences AS s WHERE s.schemaname = 'footfall');
END
$$;

-- Every session calls this function first. It fails with 57P03 if the tables are on another node, so that the client connects
-- again. On a worker to which the tables were moved, or whose functions are old, it creates the schemas footfall and report.
-- Before that, it ends the sessions on nodes that had the tables before, so that no session there reads outdated rows.
CREATE OR REPLACE FUNCTION cell.arrive() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET citus.enable_ddl_propagation = off
SET check_function_bodies = off
SET client_min_messages = warning
AS $arrive$
DECLARE
    anchor  bigint;
    wanted  text;
    texts   text[];
    reached jsonb[];
    r       record;
    top     bigint;
BEGIN
    FOR look IN 1..2 LOOP
        IF NOT cell.is_here() THEN
            RAISE EXCEPTION 'the tables of this cell are on another node' USING ERRCODE = '57P03';
        END IF;
        EXECUTE format('SELECT l.xmin || %L, l.texts FROM %s AS l', ' over ' || cell.shard('batches')::regclass::oid, cell.shard('layer'))
        INTO wanted, texts;
        IF obj_description(to_regnamespace('footfall'), 'pg_namespace') = wanted THEN
            RETURN;
        END IF;
        PERFORM pg_advisory_xact_lock(hashtext('footfall.arrive')); -- another session may be creating the schemas
    END LOOP;
    SELECT s.shardid INTO anchor FROM pg_dist_shard AS s WHERE s.logicalrelid = 'cell.batches'::regclass;
    PERFORM set_config('lock_timeout', '100ms', true);
    reached := ARRAY(SELECT n.result::jsonb FROM run_command_on_all_nodes('SELECT cell.leave()') AS n WHERE n.success);
    DROP SCHEMA IF EXISTS report CASCADE;
    DROP SCHEMA IF EXISTS footfall CASCADE;
    CREATE SCHEMA footfall;
    CREATE SCHEMA report;
    EXECUTE format('COMMENT ON SCHEMA footfall IS %L', wanted);

    FOR r IN
        SELECT c.relname, cell.shard(c.relname) AS shard, c.relispartition,
               EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisprimary) AS has_key
        FROM pg_dist_partition AS d
        JOIN pg_class AS c ON c.oid = d.logicalrelid
        WHERE c.relnamespace = 'cell'::regnamespace
          AND c.relname <> 'layer'
    LOOP
        PERFORM cell.show(r.relname);
        IF NOT r.has_key THEN
            EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', r.shard); -- otherwise no row could be deleted during a move
        END IF;
        CONTINUE WHEN r.relispartition;
        EXECUTE format('DROP TRIGGER IF EXISTS a_must_be_here ON %s', r.shard);
        EXECUTE format('CREATE TRIGGER a_must_be_here BEFORE INSERT OR UPDATE OR DELETE ON %s FOR EACH STATEMENT EXECUTE FUNCTION cell.must_be_here(%L)',
                       r.shard, ARRAY[anchor]);
    END LOOP;

    -- Citus would give each worker its own range of a sequence, and the numbers in these ranges are soon too large. So each
    -- worker has its own sequences, which continue after the numbers in its tables and after those on the previous worker.
    FOR r IN
        SELECT c.relname AS of_table, a.attname AS of_column, cell.shard(c.relname) AS shard,
               concat(c.relname, '_', a.attname, '_seq') AS seq
        FROM pg_attribute AS a
        JOIN pg_class AS c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p') AND NOT c.relispartition
        WHERE to_regclass(cell.shard(c.relname)) IS NOT NULL
          AND c.relnamespace = 'cell'::regnamespace
          AND a.attnum > 0
          AND a.attidentity <> ''
    LOOP
        EXECUTE format('SELECT greatest(max(%I), 0) FROM %s', r.of_column, r.shard) INTO top;
        SELECT greatest(top, max((n.reached ->> r.seq)::bigint)) INTO top FROM unnest(reached) AS n (reached);
        EXECUTE format('CREATE SEQUENCE footfall.%I START %s', r.seq, top + 1);
        EXECUTE format('ALTER VIEW footfall.%I ALTER %I SET DEFAULT nextval(%L)', r.of_table, r.of_column, 'footfall.' || r.seq);
    END LOOP;

    -- Copies the functions that the migration steps have made in the schema cell to the schema footfall.
    FOR r IN
        SELECT pg_get_functiondef(p.oid) AS definition
        FROM pg_proc AS p
        WHERE p.pronamespace = 'cell'::regnamespace
          AND p.prorettype <> 'trigger'::regtype
          AND p.proname NOT IN ('shard', 'is_here', 'show', 'on_coordinator', 'settle_nodes', 'make_visits_day', 'drop_visits_day', 'leave', 'arrive')
    LOOP
        EXECUTE replace(r.definition, 'FUNCTION cell.', 'FUNCTION footfall.');
    END LOOP;
    PERFORM set_config('search_path', 'footfall, pg_temp', true);
    FOREACH wanted IN ARRAY texts LOOP
        EXECUTE wanted;
    END LOOP;
    PERFORM footfall.grant_roles();
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA footfall TO footfall_app; -- a view needs this right for its default, unlike an identity column
END
$arrive$;

REVOKE ALL ON FUNCTION cell.leave(), cell.show(name), cell.on_coordinator(text), cell.make_visits_day(integer), cell.drop_visits_day(integer) FROM PUBLIC;
