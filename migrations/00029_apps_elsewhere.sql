-- Apps of which this database has the name alone, since a cell has them (docs/cluster.md).

-- +goose Up
ALTER TABLE apps ADD COLUMN cell text, ADD COLUMN cell_began timestamptz;

ALTER TABLE apps ADD CONSTRAINT apps_cell_is_a_name CHECK (cell ~ '^[a-z0-9][a-z0-9_]{0,39}$');

COMMENT ON COLUMN apps.cell IS 'The cell that has the app, and of which this row keeps the name and the rights of accounts. Null: the app is here.';

COMMENT ON COLUMN apps.cell_began IS 'When the app in the cell was added, by which it is told from a later one of its name. Null: it was not seen there yet.';

-- +goose Down
ALTER TABLE apps DROP COLUMN cell CASCADE, DROP COLUMN cell_began CASCADE;
