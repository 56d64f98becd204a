-- An app that goes to a cell counts nothing on the way, and is finished by whoever types the command
-- again (docs/cluster.md).

-- +goose Up
ALTER TABLE apps ADD COLUMN moving_to text;

ALTER TABLE apps ADD CONSTRAINT apps_moving_to_is_a_name CHECK (moving_to ~ '^[a-z0-9][a-z0-9_]{0,39}$');

COMMENT ON COLUMN apps.moving_to IS 'The cell to which the app is being moved: nothing is counted for it here until it is there, and its rows are gone. Null: it stays.';

-- +goose Down
ALTER TABLE apps DROP COLUMN moving_to CASCADE;
