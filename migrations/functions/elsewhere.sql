-- Names of apps that cells have: each leads to one cell (docs/cluster.md). They are kept in the
-- database of the coordinator from which `serve --cells` begins.
CREATE FUNCTION claim_app(named text, by_cell text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
BEGIN
    INSERT INTO apps (name, cell)
    VALUES (named, by_cell)
    ON CONFLICT (name) DO NOTHING;
    RETURN (SELECT coalesce(a.cell, '') FROM apps AS a WHERE a.name = named);
END
$$;

COMMENT ON FUNCTION claim_app(text, text) IS 'Lets the name of an app lead to a cell, unless it leads elsewhere, and returns to which cell it leads. Empty: to this database itself.';

-- Who claims a name makes the app a moment later: younger claims stay.
CREATE FUNCTION let_go_app(named text, by_cell text, older_than interval) RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    DELETE FROM apps AS a
    WHERE a.name = named
      AND a.cell = by_cell
      AND a.created_at <= now() - older_than
$$;

COMMENT ON FUNCTION let_go_app(text, text, interval) IS 'Lets the name of an app lead nowhere any more, if it has led to a cell for so long.';

CREATE FUNCTION lead_app(named text, from_cell text, to_cell text) RETURNS boolean
LANGUAGE sql SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    UPDATE apps AS a
    SET cell       = to_cell,
        created_at = now()
    WHERE a.name = named
      AND a.cell = from_cell
    RETURNING true
$$;

COMMENT ON FUNCTION lead_app(text, text, text) IS 'Lets the name of an app that leads to a cell lead to another one, and returns whether it did.';

REVOKE ALL ON FUNCTION claim_app(text, text), let_go_app(text, text, interval), lead_app(text, text, text) FROM PUBLIC;
