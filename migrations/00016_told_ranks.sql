-- By which numbers from elsewhere visitors of a target were told theirs: so a round number stays whose it
-- was where these numbers change.

-- +goose Up
-- Of offsets that are there, and of those that an instance of 0.1.0 sets, it is taken that all were told by them.
ALTER TABLE offsets
    ADD COLUMN IF NOT EXISTS told bigint[] NOT NULL DEFAULT '{}';

COMMENT ON COLUMN offsets.told IS 'How uv was before, in pairs: how many visitors had been counted when it changed, and what it was up to there. Where an offset was removed the others are 0, as long as its target has visitors.';

-- +goose Down
ALTER TABLE offsets DROP COLUMN told CASCADE;
