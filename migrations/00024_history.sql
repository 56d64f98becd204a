-- What others have counted by day, before Footfall. It stands beside what is counted, like offsets, and
-- is never added to it in a table: all that was counted here can still be recomputed.

-- +goose Up
CREATE TABLE history_imports (
    app_id      integer     NOT NULL,
    id          integer     GENERATED ALWAYS AS IDENTITY,
    imported_at timestamptz NOT NULL DEFAULT now(),
    source      text        NOT NULL,
    files       text[]      NOT NULL,

    CONSTRAINT history_imports_pkey PRIMARY KEY (app_id, id),
    CONSTRAINT history_imports_app_id_fkey FOREIGN KEY (app_id) REFERENCES apps ON DELETE CASCADE,
    CONSTRAINT history_imports_source_is_short CHECK (source ~ '^[a-z][a-z0-9]{0,31}$'),
    CONSTRAINT history_imports_have_files CHECK (cardinality(files) > 0 AND array_position(files, NULL) IS NULL)
);

COMMENT ON TABLE  history_imports             IS 'Imports of days that others have counted. One of which no day is left is gone.';
COMMENT ON COLUMN history_imports.app_id      IS 'The app.';
COMMENT ON COLUMN history_imports.id          IS 'The import''s number.';
COMMENT ON COLUMN history_imports.imported_at IS 'When it was imported.';
COMMENT ON COLUMN history_imports.source      IS 'Who counted: goatcounter, umami, plausible, matomo, ga4; or csv, which does not say.';
COMMENT ON COLUMN history_imports.files       IS 'The names of the files.';

-- A site's day is one import's, which brought all pages of that day: so no day mixes what two have counted,
-- and one that comes again is replaced whole.
CREATE TABLE history_days (
    id        bigint  GENERATED ALWAYS AS IDENTITY,
    app_id    integer NOT NULL,
    import_id integer NOT NULL,
    day_id    integer NOT NULL,
    site      text    NOT NULL,

    CONSTRAINT history_days_pkey PRIMARY KEY (id),
    CONSTRAINT history_days_are_different UNIQUE (app_id, site, day_id),
    CONSTRAINT history_days_import_fkey FOREIGN KEY (app_id, import_id) REFERENCES history_imports ON DELETE CASCADE,
    CONSTRAINT history_days_day_is_one CHECK (make_date(day_id / 10000, day_id / 100 % 100, day_id % 100) BETWEEN '1991-01-01' AND '2999-12-31'),
    CONSTRAINT history_days_site_is_one CHECK (octet_length(site) BETWEEN 1 AND 2048 AND strpos(site, '/') = 0)
);

-- For imports that are removed.
CREATE INDEX history_days_of_imports ON history_days (app_id, import_id);

COMMENT ON TABLE  history_days           IS 'Days of sites that others have counted. Where the site was counted here on that day, too, that is shown, and not these.';
COMMENT ON COLUMN history_days.id        IS 'Number in history.';
COMMENT ON COLUMN history_days.app_id    IS 'The app.';
COMMENT ON COLUMN history_days.import_id IS 'The import that brought it.';
COMMENT ON COLUMN history_days.day_id    IS 'The day, like 20190629, in the time zone in which it was counted.';
COMMENT ON COLUMN history_days.site      IS 'The site, as in pages, which need not have it.';

CREATE TABLE history (
    day          bigint NOT NULL,
    page_views   bigint,
    visits       bigint,
    visitors     bigint,
    new_visitors bigint,
    uri          text   NOT NULL,

    CONSTRAINT history_pkey PRIMARY KEY (day, uri),
    CONSTRAINT history_day_fkey FOREIGN KEY (day) REFERENCES history_days ON DELETE CASCADE,
    -- A sum of many days is still a number that every JSON parser reads exactly.
    CONSTRAINT history_numbers_are_exact CHECK (page_views BETWEEN 0 AND 1000000000000 AND visits BETWEEN 0 AND 1000000000000
                                            AND visitors BETWEEN 0 AND 1000000000000 AND new_visitors BETWEEN 0 AND 1000000000000),
    CONSTRAINT history_numbers_are_some CHECK (num_nonnulls(page_views, visits, visitors, new_visitors) > 0),
    CONSTRAINT history_uri_length CHECK (octet_length(uri) BETWEEN 1 AND 2048)
);

COMMENT ON TABLE  history              IS 'What others have counted for a page or a site on a day. A number that they do not tell is null.';
COMMENT ON COLUMN history.day          IS 'The day of its site, in history_days.';
COMMENT ON COLUMN history.page_views   IS 'How often it was opened: what is hot here.';
COMMENT ON COLUMN history.visits       IS 'Their visits (sessions), for which there is no number here.';
COMMENT ON COLUMN history.visitors     IS 'Visitors of the day, as they tell them apart: what is pv here.';
COMMENT ON COLUMN history.new_visitors IS 'Those of them that they take for new.';
COMMENT ON COLUMN history.uri          IS 'The target, as in pages, which need not have it.';

-- +goose Down
DROP TABLE history;
DROP TABLE history_days;
DROP TABLE history_imports;
