-- In a cell (see cell/cell.sql), the object with a table's name is a view, and the table has another name. A view
-- suffices for reading and writing rows. But emptying, locking and measuring a table need the table itself.
CREATE FUNCTION table_of(named text) RETURNS regclass
LANGUAGE sql STABLE
SET search_path = footfall, pg_temp
AS $$
    SELECT coalesce((SELECT d.refobjid
                     FROM pg_rewrite AS r
                     JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass
                     JOIN pg_class AS c  ON c.oid = d.refobjid AND c.relnamespace = to_regnamespace('cell')
                     WHERE r.ev_class = named::regclass
                     LIMIT 1), -- the query finds the table once for each of its columns
                    named::regclass)::regclass
$$;

COMMENT ON FUNCTION table_of(text) IS 'The table with this name. In a cell, where a view has this name: the table that the view shows.';

CREATE FUNCTION visits_partitions() RETURNS TABLE (day integer, partition regclass)
LANGUAGE sql STABLE
SET search_path = footfall, pg_temp
AS $$
    SELECT substring(pg_get_expr(c.relpartbound, c.oid), '[0-9]+')::integer, c.oid::regclass
    FROM pg_inherits AS i
    JOIN pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhparent = table_of('visits')
$$;

COMMENT ON FUNCTION visits_partitions() IS 'Partitions of visits, and their days.';
