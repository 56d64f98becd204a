-- What was counted day by day, kept by the write path itself: hot of a day could not be computed
-- later, and the rest stays when the rows of visits go. And what is made of a day once it is over.

-- +goose Up
-- A row is written by every batch that counts for its target, as that of counters is, and under its
-- lock. Nothing that changes is indexed.
CREATE TABLE days (
    page_id      bigint  NOT NULL,
    site_id      bigint,
    day_id       integer NOT NULL,
    hot          bigint  NOT NULL,
    pv           bigint  NOT NULL,
    new_visitors bigint  NOT NULL,

    PRIMARY KEY (page_id, day_id),
    CONSTRAINT days_numbers_descend CHECK (hot >= pv AND pv >= new_visitors AND new_visitors >= 0)
) WITH (fillfactor = 70);

-- The pages of a site on a day.
CREATE INDEX days_by_site ON days (site_id, day_id) WHERE site_id IS NOT NULL;

COMMENT ON TABLE  days              IS 'The sums of each target on each day; over all days they are those in counters.';
COMMENT ON COLUMN days.page_id      IS 'The target.';
COMMENT ON COLUMN days.site_id      IS 'The site of this page; null for a site.';
COMMENT ON COLUMN days.day_id       IS 'The day, like 20190629.';
COMMENT ON COLUMN days.hot          IS 'Visits.';
COMMENT ON COLUMN days.pv           IS 'Visitors of the day.';
COMMENT ON COLUMN days.new_visitors IS 'New visitors. In sums of deleted pages it stays 0, for nobody can tell any more.';

-- A visitor is counted in a range of days once: on the first of their days there, which is the one
-- whose previous day lies before the range. So uniques from one day to another = new visitors in
-- it, and those who returned in it from before it.
CREATE TABLE returns (
    page_id      bigint  NOT NULL,
    day_id       integer NOT NULL,
    previous_day integer NOT NULL,
    visitors     bigint  NOT NULL,

    PRIMARY KEY (page_id, day_id, previous_day),
    CONSTRAINT returns_are_some            CHECK (visitors >= 1),
    CONSTRAINT returns_from_an_earlier_day CHECK (previous_day < day_id)
) WITH (fillfactor = 80);

COMMENT ON TABLE  returns              IS 'How many visitors of a target came on a day, and before that last on a previous day: what makes uniques of any range exact.';
COMMENT ON COLUMN returns.page_id      IS 'The target.';
COMMENT ON COLUMN returns.day_id       IS 'The day.';
COMMENT ON COLUMN returns.previous_day IS 'The last day before it on which these visitors came.';
COMMENT ON COLUMN returns.visitors     IS 'How many there were.';

-- Which days are over everywhere, and have been summed up for good. Nobody counts for them any
-- more.
CREATE TABLE closed_days (
    day_id    integer     PRIMARY KEY,
    closed_at timestamptz NOT NULL DEFAULT now()
);

COMMENT ON TABLE  closed_days           IS 'Days that are over in every time zone and have their sketches.';
COMMENT ON COLUMN closed_days.day_id    IS 'The day.';
COMMENT ON COLUMN closed_days.closed_at IS 'When its sketches were made.';

-- How many visitors a group of targets had cannot be added up from theirs. A sketch (HyperLogLog,
-- 4,096 registers) is small, and the sketch of a group is made from those of its members. Most are
-- of few visitors: a list of the registers that are not 0 is short.
CREATE TABLE sketches (
    page_id bigint    NOT NULL,
    day_id  integer   NOT NULL,
    entries integer[] NOT NULL,

    PRIMARY KEY (page_id, day_id),
    CONSTRAINT sketches_have_registers CHECK (cardinality(entries) BETWEEN 1 AND 4096)
);

ALTER TABLE sketches ALTER COLUMN entries SET STORAGE EXTERNAL; -- compressing them saves little, and takes long

COMMENT ON TABLE  sketches         IS 'A HyperLogLog sketch of the visitors of each target on each closed day; standard error 1.625 %.';
COMMENT ON COLUMN sketches.page_id IS 'The target.';
COMMENT ON COLUMN sketches.day_id  IS 'The day.';
COMMENT ON COLUMN sketches.entries IS 'The registers that are not 0, each as register * 64 + value, in order.';

-- The first pages of each app and of each site on each closed day, by each number. Which pages were
-- first in a range of days is found from these, without reading them all. Rows may be deleted at
-- any time: then the day is read itself.
CREATE TABLE tops (
    app_id   integer  NOT NULL,
    site_id  bigint   NOT NULL,
    day_id   integer  NOT NULL,
    by       text     NOT NULL,
    page_ids bigint[] NOT NULL,
    numbers  bigint[] NOT NULL,

    PRIMARY KEY (app_id, site_id, day_id, by),
    CONSTRAINT tops_by_is_known CHECK (by IN ('pv', 'uv', 'hot')),
    CONSTRAINT tops_lists_match CHECK (cardinality(page_ids) = cardinality(numbers) AND cardinality(page_ids) <= 1000)
);

COMMENT ON TABLE  tops          IS 'The first 1,000 pages of each app, and of each of its sites, on each closed day.';
COMMENT ON COLUMN tops.app_id   IS 'The app.';
COMMENT ON COLUMN tops.site_id  IS 'The site; 0: all sites of the app.';
COMMENT ON COLUMN tops.day_id   IS 'The day.';
COMMENT ON COLUMN tops.by       IS 'The number by which they are ordered: pv, uv or hot.';
COMMENT ON COLUMN tops.page_ids IS 'The pages, the first first.';
COMMENT ON COLUMN tops.numbers  IS 'Their numbers on that day.';

-- +goose Down
DROP TABLE tops;
DROP TABLE sketches;
DROP TABLE closed_days;
DROP TABLE returns;
DROP TABLE days;
