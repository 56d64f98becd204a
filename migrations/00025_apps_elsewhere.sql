-- Apps of which this database has the name alone, since a cell has them, and those on the way to one,
-- which count nothing, and are finished by whoever types the command again (docs/cluster.md).

-- +goose Up
ALTER TABLE apps
    ADD COLUMN cell       text,
    ADD COLUMN cell_began timestamptz,
    ADD COLUMN moving_to  text;
ALTER TABLE apps
    ADD CONSTRAINT apps_cell_is_a_name CHECK (cell ~ '^[a-z0-9][a-z0-9_]{0,39}$');
ALTER TABLE apps
    ADD CONSTRAINT apps_moving_to_is_a_name CHECK (moving_to ~ '^[a-z0-9][a-z0-9_]{0,39}$');

COMMENT ON COLUMN apps.cell       IS 'The cell that has the app, and of which this row keeps the name and the rights of accounts. Null: the app is here.';
COMMENT ON COLUMN apps.cell_began IS 'When the app in the cell was added, by which it is told from a later one of its name. Null: it was not seen there yet.';
COMMENT ON COLUMN apps.moving_to  IS 'The cell to which the app is being moved: nothing is counted for it here until it is there, and its rows are gone. Null: it stays.';

-- +goose Down
ALTER TABLE apps
    DROP COLUMN cell CASCADE,
    DROP COLUMN cell_began CASCADE,
    DROP COLUMN moving_to CASCADE;
