-- What is left of rows that went: of visitors who were erased or forgotten, and of visits that were
-- kept long enough.

-- +goose Up
-- What is left of visitors who were erased, so that the sums stay and every rank is accounted for.
-- Nothing links two ranks. A row has 256 of them as bits: where all that came early are forgotten,
-- one takes half a byte, and where a row has but one rank, that alone makes it as short as can be.
CREATE TABLE erased_visitors (
    page_id bigint   NOT NULL,
    part    integer  NOT NULL,
    place   smallint,
    places  bit(256),

    PRIMARY KEY (page_id, part),
    CONSTRAINT erased_visitors_part_from_zero CHECK (part >= 0),
    CONSTRAINT erased_visitors_place_is_a_bit CHECK (place BETWEEN 0 AND 255),
    CONSTRAINT erased_visitors_one_or_several CHECK (CASE WHEN place IS NULL THEN coalesce(bit_count(places), 0) > 1 ELSE places IS NULL END)
);

COMMENT ON TABLE  erased_visitors         IS 'Visitors whose address was erased, 256 ranks a row: uv of a target = its rows in visitors and in the view erased_ranks, which has a row for each of these ranks.';
COMMENT ON COLUMN erased_visitors.page_id IS 'The target.';
COMMENT ON COLUMN erased_visitors.part    IS 'The ranks from 256 * part + 1 on.';
COMMENT ON COLUMN erased_visitors.place   IS 'Where only one of them is erased: rank 256 * part + 1 + place. Nobody else gets it.';
COMMENT ON COLUMN erased_visitors.places  IS 'Where several are: bit n, counted from 0, is 1 if rank 256 * part + 1 + n is erased.';

CREATE TABLE erased_visits (
    page_id      bigint  NOT NULL,
    day_id       integer NOT NULL,
    previous_day integer NOT NULL,
    visitors     bigint  NOT NULL,

    PRIMARY KEY (page_id, day_id, previous_day),
    CONSTRAINT erased_visits_are_some          CHECK (visitors >= 1),
    CONSTRAINT erased_visits_days_run_forwards CHECK (previous_day < day_id)
);

COMMENT ON TABLE  erased_visits              IS 'Days of visitors whose address was erased: pv of a target = its rows in visits and the sum here; so are its returns, by previous day.';
COMMENT ON COLUMN erased_visits.page_id      IS 'The target.';
COMMENT ON COLUMN erased_visits.day_id       IS 'The day.';
COMMENT ON COLUMN erased_visits.previous_day IS 'The last day before it on which these visitors came. 0: as in visits.';
COMMENT ON COLUMN erased_visits.visitors     IS 'How many there were.';

-- From which day on the rows of an app's visits are all there. Before it they may be gone; the
-- daily numbers stay.
CREATE TABLE visits_kept (
    app_id      integer PRIMARY KEY REFERENCES apps,
    from_day    integer NOT NULL,
    gone_before integer NOT NULL DEFAULT 0,

    CONSTRAINT visits_kept_go_in_order CHECK (gone_before <= from_day)
);

COMMENT ON TABLE  visits_kept             IS 'From which day on the visits of each app are kept; an app without a row keeps all.';
COMMENT ON COLUMN visits_kept.app_id      IS 'The app.';
COMMENT ON COLUMN visits_kept.from_day    IS 'Every visit of this day and of later ones has its row. Rows of earlier days are gone, or are going.';
COMMENT ON COLUMN visits_kept.gone_before IS 'No day before this one has rows of the app left, so that nobody needs to look there again.';

-- Whoever reads years of visits into an app cannot be done in a night, and must find the days at
-- the end that were there as it began.
CREATE TABLE retention_pauses (
    app_id   integer     NOT NULL REFERENCES apps,
    run      bigint      NOT NULL,
    from_day integer     NOT NULL,
    until    timestamptz NOT NULL,

    PRIMARY KEY (app_id, run)
);

COMMENT ON TABLE  retention_pauses          IS 'Apps of which nothing is let go or forgotten for now, since visits of old days are read in.';
COMMENT ON COLUMN retention_pauses.app_id   IS 'The app. It is paused as long as one of its rows lasts.';
COMMENT ON COLUMN retention_pauses.run      IS 'Who asked for the pause, of those who read visits in at the same time: a number that nobody else has.';
COMMENT ON COLUMN retention_pauses.from_day IS 'The first day of which it takes visits meanwhile.';
COMMENT ON COLUMN retention_pauses.until    IS 'When the pause is over by itself. Progress moves it.';

-- Triggers, so that a DELETE typed into psql reaches the running instances as surely as any
-- command. A command that erases takes the locks of the counters first: a batch that holds them has
-- been answered before, one that waits for them meets the new basis.
-- +goose StatementBegin
CREATE FUNCTION erasure_raises_epoch() RETURNS trigger
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    UPDATE epochs SET value = value + 1 WHERE name = 'erasures';
    RETURN NULL;
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION erasure_raises_epoch() IS 'Raises the epoch of erasures, which makes running instances forget what they remember.';

-- Counting inserts visitors, and updates nothing but last_day: it fires neither of these.
CREATE TRIGGER visitors_erased
    AFTER DELETE OR TRUNCATE OR UPDATE OF page_id, rank, ip ON visitors
    FOR EACH STATEMENT EXECUTE FUNCTION erasure_raises_epoch();

CREATE TRIGGER pages_erased
    AFTER DELETE OR TRUNCATE OR UPDATE OF id, app_id, site_id, uri ON pages
    FOR EACH STATEMENT EXECUTE FUNCTION erasure_raises_epoch();

-- +goose Down
DROP TRIGGER pages_erased ON pages;
DROP TRIGGER visitors_erased ON visitors;
DROP FUNCTION erasure_raises_epoch();
DROP TABLE retention_pauses;
DROP TABLE visits_kept;
DROP TABLE erased_visits;
DROP TABLE erased_visitors;
