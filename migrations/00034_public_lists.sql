-- Callers without a key can also read the most visited pages, and the numbers of some events.

-- +goose Up
ALTER TABLE apps
    ADD COLUMN public_top    boolean NOT NULL DEFAULT false,
    ADD COLUMN public_events text[]  NOT NULL DEFAULT '{}';

-- +goose Down
ALTER TABLE apps
    DROP COLUMN public_top CASCADE,
    DROP COLUMN public_events CASCADE;
