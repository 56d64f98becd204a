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
-- As 00007_inbox.sql made them, whose comments say what they are.
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
