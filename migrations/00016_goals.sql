-- What an app wants of its visitors: events and pages, of which its pages tell how many reach them.

-- +goose Up
ALTER TABLE apps
    ADD COLUMN goals text[] NOT NULL DEFAULT '{}';
-- No pattern is asked of each, since the service reads them as conditions of filters.
ALTER TABLE apps
    ADD CONSTRAINT apps_goals_are_few CHECK (array_position(goals, NULL) IS NULL AND cardinality(goals) <= 20);

COMMENT ON COLUMN apps.goals IS 'Goals, as conditions of filters: event:signup or page:/thanks.';

-- +goose Down
ALTER TABLE apps DROP COLUMN goals CASCADE;
