-- With what each visitor of a day came, in the row of the site: by it reports answer what several
-- values together make.

-- +goose Up
-- Without a default, so that no row is written: NULL is not known. A column that is
-- there stays: batches may write it beside a step that is taken anew.
ALTER TABLE visits
    ADD COLUMN IF NOT EXISTS tags integer[];
ALTER TABLE apps
    ADD COLUMN IF NOT EXISTS filters boolean NOT NULL DEFAULT true;

COMMENT ON COLUMN visits.tags  IS 'Of a site, the tags of the visit with which the visitor was counted on that day; {}: none. Null: not known, as of all rows of pages, and those of instances before 0.2.0 or of an app without filters.';
COMMENT ON COLUMN apps.filters IS 'Rows of visits have tags, by which reports can be filtered.';

-- +goose Down
ALTER TABLE apps DROP COLUMN filters CASCADE;
ALTER TABLE visits DROP COLUMN tags CASCADE;
