-- Values of an app's own tags are counted apart from those that strangers can make up.

-- +goose Up
-- An instance of 0.1.0 beside it that begins a day leaves the number as it was the day before: until
-- it is gone, fewer new values may be made.
ALTER TABLE page_tallies
    ADD COLUMN own_tags_today bigint NOT NULL DEFAULT 0;
ALTER TABLE page_tallies
    ADD CONSTRAINT page_tallies_own_tags_are_not_negative CHECK (own_tags_today >= 0);

COMMENT ON COLUMN page_tallies.tags_today     IS 'Sources and campaigns made on that day, whose values strangers can make up.';
COMMENT ON COLUMN page_tallies.own_tags_today IS 'Tags of the app''s own names made on that day, of visits and of people.';

-- +goose Down
ALTER TABLE page_tallies DROP COLUMN own_tags_today CASCADE;
