-- An app that was loaded from an export goes on with the visitors whom it had: a hash of an address or an
-- id is keyed with the number of the app that it was made for, too.

-- +goose Up
ALTER TABLE apps
    ADD COLUMN IF NOT EXISTS hashed_as integer;
ALTER TABLE apps
    ADD CONSTRAINT apps_hashed_as_is_of_hashes CHECK (hashed_as IS NULL OR visitor <> 'address');

COMMENT ON COLUMN apps.hashed_as IS 'The number of the app as which its visitors are hashed, where it was loaded from an export. Null: its own.';

-- +goose Down
ALTER TABLE apps DROP COLUMN hashed_as CASCADE;
