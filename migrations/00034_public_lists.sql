-- What else callers without a key can read: the most visited pages, and the numbers of some events.

-- +goose Up
ALTER TABLE apps
    ADD COLUMN public_top    boolean NOT NULL DEFAULT false,
    ADD COLUMN public_events text[]  NOT NULL DEFAULT '{}';

COMMENT ON COLUMN apps.public_top    IS 'Callers without a key can list the most visited pages of its sites, unless public_counts is off.';
COMMENT ON COLUMN apps.public_events IS 'Events whose numbers callers without a key can read, unless public_counts is off: names like signup, or like/* for all with such a path.';

-- +goose Down
ALTER TABLE apps
    DROP COLUMN public_top CASCADE,
    DROP COLUMN public_events CASCADE;
