-- The inbox is one table, from which rows are deleted as they are counted. Before, four tables took
-- turns: what is in those counts for behind until the next step has carried it over.

-- +goose Up
-- +goose StatementBegin
DO $$
BEGIN
    -- It closes the table that is written to, and keeps those waiting who come to write.
    IF to_regproc('turn_inbox') IS NOT NULL THEN
        PERFORM turn_inbox();
    END IF;
END
$$;
-- +goose StatementEnd
ALTER TABLE inbox RENAME TO inbox_before;
ALTER INDEX inbox_pkey RENAME TO inbox_before_pkey;

-- Like visits, it has no foreign keys: it is written by the thousand, and an app that is deleted
-- waits until nothing of it is left here.
CREATE TABLE inbox (
    number      bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    received_at timestamptz NOT NULL DEFAULT now(),
    app_id      integer     NOT NULL,
    visits      integer     NOT NULL,
    counted     integer     NOT NULL DEFAULT 0,
    ipv6_prefix smallint    NOT NULL,
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

    CONSTRAINT inbox_rows_wait CHECK (counted >= 0 AND counted < visits),
    CONSTRAINT inbox_arrays_are_one_table CHECK (
        visits BETWEEN 1 AND 65535
        AND cardinality(pages) = visits
        AND cardinality(days) = visits
        AND cardinality(new_pages) = visits
        AND cardinality(ips) = visits
        AND (ids IS NULL OR cardinality(ids) = visits)
        AND (tag_places IS NULL OR cardinality(tag_places) = visits)),
    CONSTRAINT inbox_pages_have_a_uri CHECK (cardinality(uris) >= 1)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- Arrays are long and short-lived: packing them would cost more than writing them.
-- In a cell Citus does not take that of a table, and they are packed.
-- +goose StatementBegin
DO $$
BEGIN
    ALTER TABLE inbox
        ALTER pages SET STORAGE EXTERNAL,
        ALTER days SET STORAGE EXTERNAL,
        ALTER new_pages SET STORAGE EXTERNAL,
        ALTER ips SET STORAGE EXTERNAL,
        ALTER tag_places SET STORAGE EXTERNAL;
EXCEPTION
    WHEN feature_not_supported THEN
        NULL;
END
$$;
-- +goose StatementEnd

CREATE INDEX inbox_of_apps ON inbox (app_id, number) INCLUDE (visits, counted);

COMMENT ON TABLE  inbox             IS 'Visits that were accepted and are not counted yet: those of an app that came at the same moment are a row.';
COMMENT ON COLUMN inbox.number      IS 'The order of counting, roughly: a smaller number may commit later.';
COMMENT ON COLUMN inbox.received_at IS 'When it came.';
COMMENT ON COLUMN inbox.app_id      IS 'The app that counts.';
COMMENT ON COLUMN inbox.visits      IS 'How many visits it was: the arrays have one element for each, but uris and tag_sets.';
COMMENT ON COLUMN inbox.counted     IS 'How many of them, from the first, are counted or dropped; the row goes with the last one.';
COMMENT ON COLUMN inbox.ipv6_prefix IS 'The ipv6_prefix of the app, by which the visitors were told apart.';
COMMENT ON COLUMN inbox.tz          IS 'The tz of the app, by which the days were found.';
COMMENT ON COLUMN inbox.visitor     IS 'How visitors of the app were told apart: apps.visitor.';
COMMENT ON COLUMN inbox.uris        IS 'The pages, each once, as targets write them. Not by their number: a page that is new is made when it is counted.';
COMMENT ON COLUMN inbox.pages       IS 'The place in uris of each visit''s page, from 1.';
COMMENT ON COLUMN inbox.days        IS 'The day of each visit, like 20190629: that of its arrival, unless the caller gave an earlier time.';
COMMENT ON COLUMN inbox.new_pages   IS 'How many new pages a day the app might have for each visit. 0: any number.';
COMMENT ON COLUMN inbox.ips         IS 'The visitors, hashed where the app hashes them.';
COMMENT ON COLUMN inbox.ids         IS 'The ids that callers gave the visits, '''' for none. Null: none has one.';
COMMENT ON COLUMN inbox.tag_sets    IS 'What the visits brought when they came, each different set of tags once: a line for each tag, in which a control character (31) parts name and value.';
COMMENT ON COLUMN inbox.tag_places  IS 'The place in tag_sets of each visit''s tags, from 1; 0: it brought none. Null: none brought any.';

-- Instances of the version before go on accepting, and tell how much waits, by these until functions
-- are made again.
-- +goose StatementBegin
DO $do$
BEGIN
    IF to_regproc('put_in_inbox') IS NULL THEN
        RETURN;
    END IF;
    CREATE OR REPLACE FUNCTION put_in_inbox(app integer, tz text, visitor text, ipv6_prefix smallint, uris text[], pages integer[],
                                            days integer[], new_pages integer[], ips inet[], ids text[],
                                            tag_sets text[] DEFAULT NULL, tag_places smallint[] DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql
    SET search_path = footfall, pg_temp
    AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock_shared(hashtext('footfall.inbox'));
        IF NOT EXISTS (
            SELECT
            FROM apps AS a
            WHERE a.id = app
              AND a.deleted_at IS NULL
              AND (a.tz, a.visitor, a.ipv6_prefix) = (put_in_inbox.tz, put_in_inbox.visitor, put_in_inbox.ipv6_prefix)
        ) THEN
            RAISE EXCEPTION 'the app is gone, or tells days or visitors apart in another way now'
                USING ERRCODE = 'FF008', HINT = 'Admit the visits again.';
        END IF;
        PERFORM require_day_near(max(d.day), 0) FROM unnest(days) AS d (day);
        INSERT INTO inbox (app_id, visits, tz, visitor, ipv6_prefix, uris, pages, days, new_pages, ips, ids, tag_sets, tag_places)
        VALUES (app, cardinality(put_in_inbox.pages), put_in_inbox.tz, put_in_inbox.visitor, put_in_inbox.ipv6_prefix, put_in_inbox.uris,
                put_in_inbox.pages, put_in_inbox.days, put_in_inbox.new_pages, put_in_inbox.ips, put_in_inbox.ids, put_in_inbox.tag_sets, put_in_inbox.tag_places);
    END
    $$;
    CREATE OR REPLACE FUNCTION inbox_behind(app integer) RETURNS bigint
    LANGUAGE sql STABLE
    SET search_path = footfall, pg_temp
    AS $$
        SELECT (SELECT coalesce(sum(a.waiting), 0) FROM inbox_apps AS a WHERE a.app_id = app)
             + (SELECT coalesce(sum(i.visits - i.counted), 0) FROM inbox AS i WHERE i.app_id = app)
    $$;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'footfall_app') THEN
        GRANT SELECT, INSERT ON inbox TO footfall_app;
    END IF;
END
$do$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE inbox;
ALTER INDEX inbox_before_pkey RENAME TO inbox_pkey;
ALTER TABLE inbox_before RENAME TO inbox;
