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
-- it, and those who returned in it from before it. (open_returns are written by batches; once a day
-- is closed they go to packed_returns. The view returns shows both as one.)
CREATE TABLE open_returns (
    page_id      bigint  NOT NULL,
    day_id       integer NOT NULL,
    previous_day integer NOT NULL,
    visitors     bigint  NOT NULL,

    PRIMARY KEY (page_id, day_id, previous_day),
    CONSTRAINT open_returns_are_some            CHECK (visitors >= 1),
    CONSTRAINT open_returns_from_an_earlier_day CHECK (previous_day < day_id)
) WITH (fillfactor = 80);

COMMENT ON TABLE  open_returns              IS 'How many visitors of a target came on a day that is not closed yet, and before that last on a previous day.';
COMMENT ON COLUMN open_returns.page_id      IS 'The target.';
COMMENT ON COLUMN open_returns.day_id       IS 'The day.';
COMMENT ON COLUMN open_returns.previous_day IS 'The last day before it on which these visitors came.';
COMMENT ON COLUMN open_returns.visitors     IS 'How many there were.';

-- A target that is visited daily has a previous day more each day: rows of open_returns would grow
-- with the square of days, by a hundred bytes each. Here one takes about as many bits as its number
-- has. The numbers are running sums, so that a range, which asks for all previous days before it,
-- reads one of them; and each takes as many bits as the first and largest, so that it is found by
-- its place.
CREATE TABLE packed_returns (
    page_id       bigint      NOT NULL,
    day_id        integer     NOT NULL,
    previous_days bit varying NOT NULL,
    visitors      bit varying NOT NULL,

    PRIMARY KEY (page_id, day_id)
) WITH (toast_tuple_target = 8160); -- a row stays in one piece for some fourteen years

COMMENT ON TABLE  packed_returns               IS 'How many visitors of a target came on a closed day, and before that last on each previous day, packed. The view returns shows it unpacked.';
COMMENT ON COLUMN packed_returns.page_id       IS 'The target.';
COMMENT ON COLUMN packed_returns.day_id        IS 'The day.';
COMMENT ON COLUMN packed_returns.previous_days IS 'Bit k is 1 where some of these visitors came k days before, and not in between. The last bit is 1.';
COMMENT ON COLUMN packed_returns.visitors      IS 'For each of those bits a number, all of the same length: how many visitors came last so many days before, or more.';

-- +goose StatementBegin
CREATE FUNCTION unpack_returns(bits bit varying, numbers bit varying) RETURNS TABLE (days_before integer, visitors bigint)
LANGUAGE sql IMMUTABLE PARALLEL SAFE -- and not STRICT, so that it is planned into the query
AS $$
    SELECT n.days_before, n.number - lead(n.number, 1, 0::bigint) OVER (ORDER BY n.days_before)
    FROM (
        SELECT p.days_before, substring(numbers, p.place * p.width - p.width + 1, p.width)::bigint AS number
        FROM (
            SELECT s.days_before,
                   (row_number() OVER (ORDER BY s.days_before))::integer       AS place,
                   (length(numbers) / nullif(bit_count(bits), 0))::integer     AS width
            FROM generate_series(1, length(bits)) AS s (days_before)
            WHERE get_bit(bits, s.days_before - 1) = 1
        ) AS p
    ) AS n
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION unpack_returns(bit varying, bit varying) IS 'How many days before visitors came last, and how many there were, from previous_days and visitors of packed_returns.';

-- Running sums to which each day adds some get smaller and smaller, the last is not 0, and the
-- first not negative. Bits of the same length are in order as such numbers are. It calls no
-- function of ours, and so finds all that it calls without a search_path: for most rows that are
-- packed this check is most of the work.
-- +goose StatementBegin
CREATE FUNCTION returns_are_some(bits bit varying, numbers bit varying) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT bool_and(CASE
                        WHEN s.place < s.places
                        THEN substring(numbers, s.place * s.width - s.width + 1, s.width) > substring(numbers, s.place * s.width + 1, s.width)
                        ELSE bit_count(substring(numbers, s.place * s.width - s.width + 1)) > 0
                    END)
           AND substring(numbers, 1, max(s.width))::bigint > 0
    FROM (
        SELECT n.places, n.width, generate_series(1, n.places) AS place
        FROM (
            SELECT bit_count(bits)::integer AS places, (length(numbers) / nullif(bit_count(bits), 0))::integer AS width
        ) AS n
    ) AS s
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION returns_are_some(bit varying, bit varying) IS 'Whether each bit of previous_days of packed_returns has visitors.';

-- A previous day that is written as a bit is an earlier one by its place.
ALTER TABLE packed_returns
    ADD CONSTRAINT packed_returns_end_with_a_day CHECK (substring(previous_days, length(previous_days)) = B'1'),
    ADD CONSTRAINT packed_returns_have_a_number_each CHECK (length(visitors) % greatest(bit_count(previous_days), 1) = 0),
    ADD CONSTRAINT packed_returns_are_some CHECK (returns_are_some(previous_days, visitors));

-- Which days are over everywhere, and have been summed up. Who counts for one of them afterwards,
-- as late visits do, adds to its sketches.
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

-- What visits bring besides a page and a visitor, each as a name and a value: (source, duckduckgo).
CREATE TABLE tags (
    id      integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id  integer NOT NULL REFERENCES apps,
    name    text    NOT NULL COLLATE "C",
    value   text    NOT NULL COLLATE "C",

    CONSTRAINT tags_are_different UNIQUE (app_id, name, value),
    CONSTRAINT tags_name_is_short CHECK (name ~ '^[a-z][a-z0-9_]{0,39}$'),
    CONSTRAINT tags_value_length  CHECK (octet_length(value) BETWEEN 1 AND 100)
);

COMMENT ON TABLE  tags         IS 'Tags that visits have brought: names and values.';
COMMENT ON COLUMN tags.id      IS 'The tag''s number in tag_days.';
COMMENT ON COLUMN tags.app_id  IS 'The app that counts it.';
COMMENT ON COLUMN tags.name    IS 'What it is about: source, campaign, country, language, device, system, browser, hour, or one of the app''s own.';
COMMENT ON COLUMN tags.value   IS 'What a visit brought; (other): one that is not kept by itself.';

-- Visits that count in pv bring one value of a name each, or none. So the values of a name never add
-- up to more than pv, and what is missing came without one.
--
-- It has no foreign keys: it is written under a lock, of pages that are there, and its tags go with
-- their app, as its pages do.
CREATE TABLE tag_days (
    page_id   bigint  NOT NULL,
    pv        bigint  NOT NULL,
    newcomers bigint  NOT NULL,
    day_id    integer NOT NULL,
    tag_id    integer NOT NULL,

    PRIMARY KEY (page_id, day_id, tag_id),
    CONSTRAINT tag_days_numbers_descend CHECK (pv >= newcomers AND newcomers >= 0 AND pv >= 1)
) WITH (fillfactor = 70);

COMMENT ON TABLE  tag_days           IS 'How many visitors of each target came with each tag on each day: sites have all tags, pages those of source and campaign. It follows a moment after the other numbers.';
COMMENT ON COLUMN tag_days.page_id   IS 'The target.';
COMMENT ON COLUMN tag_days.pv        IS 'Visitors of the day whose first visit on it brought the tag.';
COMMENT ON COLUMN tag_days.newcomers IS 'Those among them who got their rank with that visit.';
COMMENT ON COLUMN tag_days.day_id    IS 'The day, like 20190629.';
COMMENT ON COLUMN tag_days.tag_id    IS 'The tag.';

-- What batches have brought and tag_days does not have yet: a row a batch. To add the tags up in the
-- batch itself would take nearly half as long as all else that it does, under its locks.
--
-- Rows stay for a second or so, and only Footfall reads them: what they bring is packed, which takes
-- half the time that arrays take. There is no index, so that vacuuming is quick, and it should
-- not wait until there is much to vacuum.
CREATE TABLE tag_news (
    verdicts smallint[],
    tags     bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);

-- Compressing them takes longer than what they are for.
ALTER TABLE tag_news
    ALTER COLUMN verdicts SET STORAGE EXTERNAL,
    ALTER COLUMN tags SET STORAGE EXTERNAL;

COMMENT ON TABLE  tag_news          IS 'Tags of batches that tag_days does not have yet, for a second or so.';
COMMENT ON COLUMN tag_news.verdicts IS 'What each pair of target and visitor was: 0: counted before on its day, 1: a visitor of the day, 2: one who never came before. Null: all were that.';
COMMENT ON COLUMN tag_news.tags     IS 'For each pair that has tags: its place among the pairs, from 0, its target, its day less that of the pair before, how many tags it has, and these. Numbers are zigzag varints.';

-- +goose Down
DROP TABLE tag_news;
DROP TABLE tag_days;
DROP TABLE tags;
DROP TABLE tops;
DROP TABLE sketches;
DROP TABLE closed_days;
DROP TABLE packed_returns;
DROP FUNCTION returns_are_some(bit varying, bit varying);
DROP FUNCTION unpack_returns(bit varying, bit varying);
DROP TABLE open_returns;
DROP TABLE days;
