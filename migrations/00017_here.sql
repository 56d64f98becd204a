-- Who is on a site now: kept for minutes, beside counting.

-- +goose Up
CREATE TABLE here (
    site_id  bigint      NOT NULL,
    number   bigint      GENERATED ALWAYS AS IDENTITY,
    came_at  timestamptz NOT NULL DEFAULT now(),
    visitors inet[]      NOT NULL,

    PRIMARY KEY (site_id, number)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

COMMENT ON TABLE  here          IS 'Who came to a site of late, whom an instance has counted there: a row for some seconds, which goes after five minutes.';
COMMENT ON COLUMN here.site_id  IS 'The site.';
COMMENT ON COLUMN here.number   IS 'Tells rows apart.';
COMMENT ON COLUMN here.came_at  IS 'When the row was written, some seconds after they came at most.';
COMMENT ON COLUMN here.visitors IS 'Their addresses, as visits have them, each once.';

-- +goose Down
DROP TABLE here;
