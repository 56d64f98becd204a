-- What waited in the tables of the inbox before is carried over, a turn at a time, and they go.

-- +goose NO TRANSACTION
-- +goose Up
-- +goose StatementBegin
DO $$
DECLARE
    t record;
BEGIN
    IF to_regclass('inbox_turns') IS NULL THEN
        RETURN;
    END IF;
    FOR t IN SELECT u.turn, u.slot, u.next FROM inbox_turns AS u ORDER BY u.turn LOOP
        INSERT INTO inbox (received_at, app_id, visits, counted, ipv6_prefix, tz, visitor, uris, pages, days, new_pages, ips, ids, tag_sets, tag_places)
        SELECT b.received_at, b.app_id, b.visits, greatest(t.next - b.number * 65536, 0), b.ipv6_prefix, b.tz, b.visitor,
               b.uris, b.pages, b.days, b.new_pages, b.ips, b.ids, b.tag_sets, b.tag_places
        FROM inbox_before AS b
        WHERE b.slot = t.slot
          AND b.turn = t.turn
          AND b.number * 65536 + b.visits > t.next
        ORDER BY b.number;
        DELETE FROM inbox_turns AS u WHERE u.turn = t.turn; -- and with it what waits in it by inbox_apps
        COMMIT;
    END LOOP;
END
$$;
-- +goose StatementEnd
DROP TABLE IF EXISTS inbox_before;
DROP SEQUENCE IF EXISTS inbox_numbers;
DROP TABLE IF EXISTS inbox_apps;
DROP TABLE IF EXISTS inbox_turns;

-- +goose Down
CREATE TABLE inbox_turns (
    turn            bigint      PRIMARY KEY,
    opened_at       timestamptz NOT NULL DEFAULT now(),
    closed_at       timestamptz,
    accepted        bigint      NOT NULL DEFAULT 0,
    accepted_before bigint      NOT NULL DEFAULT 0,
    next            bigint      NOT NULL DEFAULT 0,
    try_at          timestamptz NOT NULL DEFAULT '-infinity',
    slot            smallint    NOT NULL,

    CONSTRAINT inbox_turns_have_a_table         CHECK (turn > 0 AND slot BETWEEN 0 AND 3 OR turn < 0 AND slot = 4 AND closed_at IS NOT NULL),
    CONSTRAINT inbox_turns_are_added_up_at_last CHECK (accepted >= 0 AND (closed_at IS NOT NULL OR accepted = 0))
);

COMMENT ON TABLE  inbox_turns                 IS 'The turns that the tables of the inbox have had since they were last emptied, and what was put aside.';
COMMENT ON COLUMN inbox_turns.turn            IS 'The turn''s number. No turn is given a second time. Below 0: visits that were put aside, all of the app that has this number without the sign. Such a turn is there as long as any of them waits.';
COMMENT ON COLUMN inbox_turns.opened_at       IS 'Since when it has taken visits.';
COMMENT ON COLUMN inbox_turns.closed_at       IS 'Since when it takes none any more. Null: it is the open one. Of visits that were put aside: since when the first of them is.';
COMMENT ON COLUMN inbox_turns.accepted        IS 'How many visits it had when it was closed, or how many were put aside.';
COMMENT ON COLUMN inbox_turns.accepted_before IS 'How many visits all turns before it had.';
COMMENT ON COLUMN inbox_turns.next            IS 'Up to here all of it is counted, put aside, or passed by, since nothing could count it any more: 65536 times the number of a row, and how many visits of that.';
COMMENT ON COLUMN inbox_turns.try_at          IS 'When visits that were put aside are to be tried again.';
COMMENT ON COLUMN inbox_turns.slot            IS 'Which of the tables has it: inbox_0 to inbox_3; 4: inbox_aside.';

CREATE UNIQUE INDEX inbox_turns_one_is_open ON inbox_turns ((closed_at IS NULL)) WHERE closed_at IS NULL;

INSERT INTO inbox_turns (turn, slot) VALUES (1, 0);

CREATE TABLE inbox_apps (
    turn     bigint  NOT NULL,
    accepted bigint  NOT NULL,
    taken    bigint  NOT NULL DEFAULT 0,
    waiting  bigint  NOT NULL GENERATED ALWAYS AS (accepted - taken) STORED,
    app_id   integer NOT NULL,

    PRIMARY KEY (turn, app_id),
    CONSTRAINT inbox_apps_turn_fkey              FOREIGN KEY (turn) REFERENCES inbox_turns ON DELETE CASCADE,
    CONSTRAINT inbox_apps_take_what_was_accepted CHECK (taken BETWEEN 0 AND accepted)
);

COMMENT ON TABLE  inbox_apps          IS 'What each app has in a closed turn of the inbox, and how much of that waits.';
COMMENT ON COLUMN inbox_apps.turn     IS 'The turn.';
COMMENT ON COLUMN inbox_apps.accepted IS 'How many visits of the app it had when it was closed, or how many were put aside.';
COMMENT ON COLUMN inbox_apps.taken    IS 'How many of them are before the turn''s position.';
COMMENT ON COLUMN inbox_apps.waiting  IS 'How many visits are left.';
COMMENT ON COLUMN inbox_apps.app_id   IS 'The app.';

CREATE INDEX inbox_apps_that_wait ON inbox_apps (app_id, turn) WHERE waiting > 0;

CREATE SEQUENCE inbox_numbers;

CREATE TABLE inbox_before (
    turn        bigint      NOT NULL,
    number      bigint      NOT NULL DEFAULT nextval('inbox_numbers'),
    received_at timestamptz NOT NULL DEFAULT now(),
    app_id      integer     NOT NULL,
    visits      integer     NOT NULL,
    ipv6_prefix smallint    NOT NULL,
    slot        smallint    NOT NULL,
    tz          text        NOT NULL,
    visitor     text        NOT NULL,
    uris        text[]      NOT NULL,
    pages       integer[]   NOT NULL,
    days        integer[]   NOT NULL,
    new_pages   integer[]   NOT NULL,
    ips         inet[]      NOT NULL,
    ids         text[],
    tag_sets    text[],
    tag_places  smallint[],

    CONSTRAINT inbox_before_pkey PRIMARY KEY (slot, turn, number),
    CONSTRAINT inbox_arrays_are_one_table CHECK (
        visits BETWEEN 1 AND 65535
        AND cardinality(pages) = visits
        AND cardinality(days) = visits
        AND cardinality(new_pages) = visits
        AND cardinality(ips) = visits
        AND (ids IS NULL OR cardinality(ids) = visits)
        AND (tag_places IS NULL OR cardinality(tag_places) = visits)),
    CONSTRAINT inbox_pages_have_a_uri CHECK (cardinality(uris) >= 1)
) PARTITION BY LIST (slot);

COMMENT ON TABLE  inbox_before             IS 'Visits that were accepted to be counted later: those of an app that came at the same moment are a row. Which rows are counted already, inbox_turns tells.';
COMMENT ON COLUMN inbox_before.turn        IS 'The turn in which it came, or was put aside.';
COMMENT ON COLUMN inbox_before.number      IS 'The order of counting within the turn.';
COMMENT ON COLUMN inbox_before.received_at IS 'When it came.';
COMMENT ON COLUMN inbox_before.app_id      IS 'The app that counts.';
COMMENT ON COLUMN inbox_before.visits      IS 'How many visits it is: the arrays have one element for each, but uris and tag_sets.';
COMMENT ON COLUMN inbox_before.ipv6_prefix IS 'The ipv6_prefix of the app, by which the visitors were told apart.';
COMMENT ON COLUMN inbox_before.slot        IS 'The table that has the turn.';
COMMENT ON COLUMN inbox_before.tz          IS 'The tz of the app, by which the days were found.';
COMMENT ON COLUMN inbox_before.visitor     IS 'How visitors of the app were told apart: apps.visitor.';
COMMENT ON COLUMN inbox_before.uris        IS 'The pages, each once, as targets write them; where the row was put aside, perhaps more than it needs. Not by their number: a page that is new is made when it is counted.';
COMMENT ON COLUMN inbox_before.pages       IS 'The place in uris of each visit''s page, from 1.';
COMMENT ON COLUMN inbox_before.days        IS 'The day of each visit, like 20190629: that of its arrival, unless the caller gave an earlier time.';
COMMENT ON COLUMN inbox_before.new_pages   IS 'How many new pages a day the app might have for each visit. 0: any number.';
COMMENT ON COLUMN inbox_before.ips         IS 'The visitors, hashed where the app hashes them.';
COMMENT ON COLUMN inbox_before.ids         IS 'The ids that callers gave the visits, '''' for none. Null: none has one.';
COMMENT ON COLUMN inbox_before.tag_sets    IS 'What the visits brought when they came, each different set of tags once: a line for each tag, in which a control character (31) parts name and value.';
COMMENT ON COLUMN inbox_before.tag_places  IS 'The place in tag_sets of each visit''s tags, from 1; 0: it brought none. Null: none brought any.';

CREATE TABLE inbox_0 PARTITION OF inbox_before FOR VALUES IN (0) WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);
CREATE TABLE inbox_1 PARTITION OF inbox_before FOR VALUES IN (1) WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);
CREATE TABLE inbox_2 PARTITION OF inbox_before FOR VALUES IN (2) WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);
CREATE TABLE inbox_3 PARTITION OF inbox_before FOR VALUES IN (3) WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);

CREATE TABLE inbox_aside PARTITION OF inbox_before FOR VALUES IN (4);

-- +goose StatementBegin
DO $$
DECLARE
    part text;
BEGIN
    FOREACH part IN ARRAY ARRAY['inbox_0', 'inbox_1', 'inbox_2', 'inbox_3', 'inbox_aside'] LOOP
        EXECUTE format('ALTER TABLE %I ALTER pages SET STORAGE EXTERNAL, ALTER days SET STORAGE EXTERNAL,
                                       ALTER new_pages SET STORAGE EXTERNAL, ALTER ips SET STORAGE EXTERNAL,
                                       ALTER tag_places SET STORAGE EXTERNAL', part);
    END LOOP;
END
$$;
-- +goose StatementEnd

COMMENT ON TABLE inbox_0 IS 'One of the four tables of the inbox that take turns: a partition of inbox.';
COMMENT ON TABLE inbox_1 IS 'One of the four tables of the inbox that take turns: a partition of inbox.';
COMMENT ON TABLE inbox_2 IS 'One of the four tables of the inbox that take turns: a partition of inbox.';
COMMENT ON TABLE inbox_3 IS 'One of the four tables of the inbox that take turns: a partition of inbox.';
COMMENT ON TABLE inbox_aside IS 'Visits in the inbox that could not be counted when it was their turn: a partition of inbox.';

