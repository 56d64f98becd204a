-- The parts of Citus and migrations/cell/cell.sql that queries/cell.sql and queries/cells/ use, and goose's
-- table. They are declared only for sqlc, which does not know Citus and goose. This file is never executed.
CREATE TABLE goose_db_version (id integer NOT NULL, version_id bigint NOT NULL, is_applied boolean NOT NULL, tstamp timestamp NOT NULL);
CREATE TABLE pg_dist_node (nodeid integer NOT NULL, groupid integer NOT NULL, nodename text NOT NULL, nodeport integer NOT NULL, noderole text NOT NULL, isactive boolean NOT NULL, metadatasynced boolean NOT NULL);
CREATE TABLE pg_dist_shard (logicalrelid regclass NOT NULL, shardid bigint NOT NULL);
CREATE TABLE pg_dist_placement (shardid bigint NOT NULL, groupid integer NOT NULL);
CREATE TABLE pg_dist_cleanup (node_group_id integer NOT NULL);
CREATE TABLE pg_dist_local_group (groupid integer NOT NULL);
CREATE FUNCTION citus_set_coordinator_host(host text, port integer) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION citus_add_node(host text, port integer) RETURNS integer LANGUAGE sql AS '';
CREATE FUNCTION citus_set_node_property(host text, port integer, property text, value boolean) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION citus_schema_move(schema_id regnamespace, host text, port integer, mode text) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION citus_update_node(id integer, host text, port integer, force boolean, cooldown integer) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION citus_remove_node(host text, port integer) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION citus_check_connection_to_node(host text, port integer) RETURNS boolean LANGUAGE sql AS '';
CREATE FUNCTION citus_check_cluster_node_health() RETURNS TABLE (from_nodename text, from_nodeport integer, to_nodename text, to_nodeport integer, result boolean) LANGUAGE sql AS '';
CREATE SCHEMA cell;
CREATE FUNCTION cell.arrive() RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION cell.shard(named name) RETURNS text LANGUAGE sql AS '';
CREATE TABLE cell.layer (one boolean PRIMARY KEY, texts text[] NOT NULL);
