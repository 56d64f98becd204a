-- Names of apps that are in cells, which are other databases (docs/cluster.md). Each name refers to one cell. The names
-- are stored in the database on the coordinator, to which `serve --cells` connects when it starts.
CREATE FUNCTION claim_app(named text, by_cell text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
BEGIN
    INSERT INTO apps (name, cell)
    VALUES (named, by_cell)
    ON CONFLICT (name) DO UPDATE
        SET created_at = now()
        WHERE apps.cell = by_cell
          AND apps.moving_to IS NULL; -- must not change created_at, by which an unfinished move finds the app
    RETURN (SELECT coalesce(a.cell, '') FROM apps AS a WHERE a.name = named);
END
$$;

COMMENT ON FUNCTION claim_app(text, text) IS 'Makes the name of an app refer to a cell, unless the name is already in use. Returns the cell to which the name refers, or an empty text if the app is in this database.';

-- Keeps names that were claimed recently, because the caller of claim_app makes the app in the cell a moment later.
CREATE FUNCTION let_go_app(named text, by_cell text, older_than interval) RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    DELETE FROM apps AS a
    WHERE a.name = named
      AND a.cell = by_cell
      AND a.moving_to IS NULL
      AND a.created_at <= now() - older_than
$$;

COMMENT ON FUNCTION let_go_app(text, text, interval) IS 'Removes the name of an app that has referred to a cell for at least this long.';

-- If the name now refers to a different app (cell_began differs), the accounts' rights to the old app are deleted.
CREATE FUNCTION lead_app(named text, from_cell text, to_cell text, began timestamptz) RETURNS boolean
LANGUAGE sql SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    WITH led AS (
        SELECT a.id, a.cell_began
        FROM apps AS a
        WHERE a.name = named
          AND a.cell = from_cell
        FOR NO KEY UPDATE
    ), ended AS (
        DELETE FROM account_apps AS r
        USING led AS l
        WHERE r.app_id = l.id
          AND l.cell_began <> began
    )
    UPDATE apps AS a
    SET cell       = to_cell,
        cell_began = coalesce(began, a.cell_began),
        created_at = CASE WHEN a.moving_to IS NULL THEN now() ELSE a.created_at END
    FROM led AS l
    WHERE a.id = l.id
    RETURNING true
$$;

COMMENT ON FUNCTION lead_app(text, text, text, timestamptz) IS 'Makes the name of an app that refers to a cell refer to another cell, or to another app in the cell. Returns true, or null if the name did not refer to from_cell.';

REVOKE ALL ON FUNCTION claim_app(text, text), let_go_app(text, text, interval), lead_app(text, text, text, timestamptz) FROM PUBLIC;
