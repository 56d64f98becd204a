-- What the database knows of the files that made it: which steps, and which functions and views.
--
-- Tables live in the schema `footfall`; every connection of Footfall has it as its search_path, so
-- names stand without it in all of these files.

-- +goose Up
CREATE TABLE schema_files (
    name text PRIMARY KEY,
    hash text NOT NULL
);

COMMENT ON TABLE  schema_files      IS 'The files of migrations/ that made this database, so that a footfall with other ones notices.';
COMMENT ON COLUMN schema_files.name IS 'A step, like 00001_schema.sql; or "functions": all files of functions/ and report/ together.';
COMMENT ON COLUMN schema_files.hash IS 'SHA-256 of its text; of functions behind their number.';

-- goose keeps this table, and makes it before the first step. Not a statement of its own, since
-- sqlc does not know the table.
-- +goose StatementBegin
DO $$
BEGIN
    COMMENT ON TABLE  goose_db_version            IS 'Which steps of migrations/ were applied; goose keeps it.';
    COMMENT ON COLUMN goose_db_version.id         IS 'Counts the rows.';
    COMMENT ON COLUMN goose_db_version.version_id IS 'The number of the step. 0: none.';
    COMMENT ON COLUMN goose_db_version.is_applied IS 'True: a step that is taken back has no row.';
    COMMENT ON COLUMN goose_db_version.tstamp     IS 'When it was applied.';
END
$$;
-- +goose StatementEnd

CREATE TABLE schema_objects (
    kind text NOT NULL,
    name text NOT NULL,

    PRIMARY KEY (kind, name),
    CONSTRAINT schema_objects_kind_is_known CHECK (kind IN ('FUNCTION', 'VIEW'))
);

COMMENT ON TABLE  schema_objects      IS 'What the files of functions/ and report/ made, and what goes before they are run again. What else is in the schemas stays.';
COMMENT ON COLUMN schema_objects.kind IS 'FUNCTION or VIEW.';
COMMENT ON COLUMN schema_objects.name IS 'Its name as a statement writes it, of a function with the types that it takes.';

-- Views go first, for they call functions. What somebody else has built on one of them keeps it
-- from going, and is named in the error.
-- +goose StatementBegin
CREATE FUNCTION drop_functions() RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
DECLARE
    kind text;
    name text;
BEGIN
    FOR kind, name IN SELECT o.kind, o.name FROM schema_objects AS o ORDER BY o.kind DESC, o.name LOOP
        EXECUTE format('DROP %s IF EXISTS %s', kind, name);
    END LOOP;
    DELETE FROM schema_objects;
    DELETE FROM schema_files AS f WHERE f.name = 'functions';
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION drop_functions() IS 'Drops what the files of functions/ and report/ made.';

-- A row of the catalog tells in xmin which transaction wrote it.
-- +goose StatementBegin
CREATE FUNCTION note_functions(hash text) RETURNS void
LANGUAGE sql
SET search_path = footfall, pg_temp
AS $$
    INSERT INTO schema_objects (kind, name)
    SELECT 'FUNCTION', p.oid::regprocedure::text
    FROM pg_proc AS p
    WHERE p.pronamespace IN (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname IN ('footfall', 'report'))
      AND p.xmin = pg_current_xact_id()::xid
    UNION ALL
    SELECT 'VIEW', c.oid::regclass::text
    FROM pg_class AS c
    WHERE c.relnamespace IN (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname IN ('footfall', 'report'))
      AND c.relkind = 'v'
      AND c.xmin = pg_current_xact_id()::xid;
    INSERT INTO schema_files (name, hash) VALUES ('functions', note_functions.hash)
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION note_functions(text) IS 'Notes that all functions and views of this transaction were made by the files of functions/ and report/ with this hash.';

REVOKE ALL ON FUNCTION drop_functions(), note_functions(text) FROM PUBLIC;

-- +goose Down
DROP FUNCTION note_functions(text);
DROP FUNCTION drop_functions();
DROP TABLE schema_objects;
DROP TABLE schema_files;
