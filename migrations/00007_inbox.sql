-- The inbox: visits that were accepted and are counted a moment later. Taking one in costs a
-- fraction of counting it: nothing is looked up, and many that come at the same moment are one row.
--
-- Four tables take turns. Visits are written to one, and only those are read that have been closed:
-- then nobody writes to them any more, and all that was committed is to be seen, so that a number
-- is a position. (As long as somebody writes, it is none: a smaller number may commit later.)
-- A table that was read to its end is emptied as a whole; only an erasure deletes rows before. Visits
-- that cannot be counted now would keep their table from that, and those behind them waiting: they
-- are put aside, into a fifth table, in a turn of their app alone, which is tried again later.

-- +goose Up
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

-- Like visits, it has no foreign keys: it is written by the thousand, and an app that is deleted
-- waits until nothing of it is left here.
CREATE TABLE inbox (
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

    PRIMARY KEY (slot, turn, number),
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

COMMENT ON TABLE  inbox             IS 'Visits that were accepted to be counted later: those of an app that came at the same moment are a row. Which rows are counted already, inbox_turns tells.';
COMMENT ON COLUMN inbox.turn        IS 'The turn in which it came, or was put aside.';
COMMENT ON COLUMN inbox.number      IS 'The order of counting within the turn.';
COMMENT ON COLUMN inbox.received_at IS 'When it came.';
COMMENT ON COLUMN inbox.app_id      IS 'The app that counts.';
COMMENT ON COLUMN inbox.visits      IS 'How many visits it is: the arrays have one element for each, but uris and tag_sets.';
COMMENT ON COLUMN inbox.ipv6_prefix IS 'The ipv6_prefix of the app, by which the visitors were told apart.';
COMMENT ON COLUMN inbox.slot        IS 'The table that has the turn.';
COMMENT ON COLUMN inbox.tz          IS 'The tz of the app, by which the days were found.';
COMMENT ON COLUMN inbox.visitor     IS 'How visitors of the app were told apart: apps.visitor.';
COMMENT ON COLUMN inbox.uris        IS 'The pages, each once, as targets write them; where the row was put aside, perhaps more than it needs. Not by their number: a page that is new is made when it is counted.';
COMMENT ON COLUMN inbox.pages       IS 'The place in uris of each visit''s page, from 1.';
COMMENT ON COLUMN inbox.days        IS 'The day of each visit, like 20190629: that of its arrival, unless the caller gave an earlier time.';
COMMENT ON COLUMN inbox.new_pages   IS 'How many new pages a day the app might have for each visit. 0: any number.';
COMMENT ON COLUMN inbox.ips         IS 'The visitors, hashed where the app hashes them.';
COMMENT ON COLUMN inbox.ids         IS 'The ids that callers gave the visits, '''' for none. Null: none has one.';
COMMENT ON COLUMN inbox.tag_sets    IS 'What the visits brought when they came, each different set of tags once: a line for each tag, in which a control character (31) parts name and value.';
COMMENT ON COLUMN inbox.tag_places  IS 'The place in tag_sets of each visit''s tags, from 1; 0: it brought none. Null: none brought any.';

-- Few rows are ever deleted, and a table is emptied soon, so nothing has to be vacuumed. Arrays are long and
-- short-lived: packing them would cost more than writing them.
CREATE TABLE inbox_0 PARTITION OF inbox FOR VALUES IN (0) WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);
CREATE TABLE inbox_1 PARTITION OF inbox FOR VALUES IN (1) WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);
CREATE TABLE inbox_2 PARTITION OF inbox FOR VALUES IN (2) WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);
CREATE TABLE inbox_3 PARTITION OF inbox FOR VALUES IN (3) WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);

-- What was put aside is deleted row by row.
CREATE TABLE inbox_aside PARTITION OF inbox FOR VALUES IN (4);

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

-- +goose Down
DROP TABLE inbox;
DROP SEQUENCE inbox_numbers;
DROP TABLE inbox_apps;
DROP TABLE inbox_turns;
