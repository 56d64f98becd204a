-- With what each visitor of a day came, in the row of the site: by it reports answer what several
-- values together make. And what an app wants of its visitors: goals are conditions, too.

-- +goose Up
-- Without a default, so that no row is written: NULL is not known. A column that is
-- there stays: batches may write it beside a step that is taken anew.
ALTER TABLE visits
    ADD COLUMN IF NOT EXISTS tags integer[];
ALTER TABLE apps
    ADD COLUMN IF NOT EXISTS filters boolean NOT NULL DEFAULT true,
    ADD COLUMN goals text[] NOT NULL DEFAULT '{}';
-- No pattern is asked of each, since the service reads them as conditions of filters.
ALTER TABLE apps
    ADD CONSTRAINT apps_goals_are_few CHECK (array_position(goals, NULL) IS NULL AND cardinality(goals) <= 20);

COMMENT ON COLUMN visits.tags  IS 'Of a site, the tags of the visit with which the visitor was counted on that day; {}: none. Null: not known, as of all rows of pages, and those of instances before 0.2.0 or of an app without filters.';
COMMENT ON COLUMN apps.filters IS 'Rows of visits have tags, by which reports can be filtered.';
COMMENT ON COLUMN apps.goals   IS 'Goals, as conditions of filters: event:signup or page:/thanks.';

-- +goose Down
ALTER TABLE apps
    DROP COLUMN goals CASCADE,
    DROP COLUMN filters CASCADE;
ALTER TABLE visits DROP COLUMN tags CASCADE;
