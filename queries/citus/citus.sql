-- What queries/cells.sql uses of Citus and of migrations/cell/cell.sql, for sqlc, which knows
-- neither. This is never run.
CREATE TABLE pg_dist_node (groupid integer NOT NULL, nodename text NOT NULL, nodeport integer NOT NULL, noderole text NOT NULL, isactive boolean NOT NULL);
CREATE TABLE pg_dist_shard (logicalrelid regclass NOT NULL, shardid bigint NOT NULL);
CREATE TABLE pg_dist_placement (shardid bigint NOT NULL, groupid integer NOT NULL);
CREATE FUNCTION citus_set_coordinator_host(host text, port integer) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION citus_add_node(host text, port integer) RETURNS integer LANGUAGE sql AS '';
CREATE FUNCTION citus_set_node_property(host text, port integer, property text, value boolean) RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION citus_schema_move(schema_id regnamespace, host text, port integer, mode text) RETURNS void LANGUAGE sql AS '';
CREATE SCHEMA cell;
CREATE FUNCTION cell.arrive() RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION cell.shard(named name) RETURNS text LANGUAGE sql AS '';
CREATE TABLE cell.layer (one boolean PRIMARY KEY, texts text[] NOT NULL);
