-- Who came: a row for each (target, visitor), and one for each (target, visitor, day).
--
-- Neither has a foreign key: both are written only under the lock of the target's counters row, and
-- a check for each of a million rows would cost more than the insert.

-- +goose Up
CREATE TABLE visitors (
    page_id   bigint  NOT NULL,
    rank      bigint  NOT NULL,
    first_day integer NOT NULL,
    last_day  integer NOT NULL,
    ip        inet    NOT NULL,

    PRIMARY KEY (page_id, ip),
    -- No two visitors share a rank. With uv = count(*) = max(rank) this is: ranks are exactly
    -- 1..uv.
    CONSTRAINT visitors_rank_is_unique    UNIQUE (page_id, rank),
    CONSTRAINT visitors_rank_from_one     CHECK (rank >= 1),
    CONSTRAINT visitors_days_run_forwards CHECK (last_day >= first_day),
    CONSTRAINT visitors_ip_is_one_address CHECK (masklen(ip) = CASE family(ip) WHEN 4 THEN 32 ELSE 128 END)
) WITH (fillfactor = 90); -- room for last_day, which changes once a day and visitor

COMMENT ON TABLE  visitors           IS 'One row for each visitor of each target, until the visitor is erased or forgotten: the proof of uv and of every rank.';
COMMENT ON COLUMN visitors.page_id   IS 'The target.';
COMMENT ON COLUMN visitors.rank      IS 'The place of this visitor in the order of first visits to the target: 1, 2, 3 …';
COMMENT ON COLUMN visitors.first_day IS 'The earliest day that was counted, like 20190629.';
COMMENT ON COLUMN visitors.last_day  IS 'The latest day that was counted.';
COMMENT ON COLUMN visitors.ip        IS 'The visitor: an address, for IPv6 the first of its network.';

-- The key is (ip, day, page) with the page first: what is asked for together lies together. The
-- numbers come first, so that nothing is padded between columns: a row of an IPv4 address, which
-- would be filled up to a multiple of eight, has room for the previous day at no cost.
CREATE TABLE visits (
    page_id      bigint  NOT NULL,
    day_id       integer NOT NULL,
    previous_day integer NOT NULL,
    ip           inet    NOT NULL,

    PRIMARY KEY (page_id, day_id, ip),
    CONSTRAINT visits_days_run_forwards CHECK (previous_day < day_id)
) PARTITION BY LIST (day_id);

COMMENT ON TABLE  visits              IS 'One row for each day on which a visitor came to a target: the proof of pv. A partition a day.';
COMMENT ON COLUMN visits.page_id      IS 'The target.';
COMMENT ON COLUMN visits.day_id       IS 'The natural day in the app''s time zone, like 20190629.';
COMMENT ON COLUMN visits.previous_day IS 'The last day before it on which the visitor came to the target. 0: never before; and in sums of deleted pages, where nobody can tell.';
COMMENT ON COLUMN visits.ip           IS 'The visitor.';

-- The clock by which ids of batches are written and go, in seconds: the database's, not that of the
-- instance that made an id.
-- +goose StatementBegin
CREATE FUNCTION batches_clock() RETURNS bigint
LANGUAGE sql VOLATILE -- and not fixed to a search_path, so that it costs no call
AS $$
    SELECT extract(epoch FROM clock_timestamp())::bigint
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION batches_clock() IS 'The seconds by which the two tables of batches take turns.';

-- Which batches committed. An instance that lost its connection during COMMIT inserts the batch's
-- id again: that waits for the old transaction, and finds the id taken if it committed. What it
-- inserts itself is marked abandoned, so that it may ask again when the answer is lost, too.
--
-- Two tables take turns of three minutes, so that empty_batches() need not look for the ids that
-- are old enough. Nothing is ever deleted from them, so nothing has to be vacuumed.
CREATE TABLE batches (
    id             uuid     NOT NULL,
    turn           smallint NOT NULL DEFAULT batches_clock() / 180 % 2,
    schema_version smallint NOT NULL,
    abandoned      boolean  NOT NULL DEFAULT false,

    PRIMARY KEY (id, turn),
    -- A batch that leaves something out would break promises. Raised by a step that changes what a
    -- batch has to write, this keeps out instances that do not know of it.
    CONSTRAINT batches_by_this_version CHECK (schema_version = 2)
) PARTITION BY LIST (turn);

CREATE TABLE batches_0 PARTITION OF batches FOR VALUES IN (0) WITH (autovacuum_enabled = false);
CREATE TABLE batches_1 PARTITION OF batches FOR VALUES IN (1) WITH (autovacuum_enabled = false);

COMMENT ON TABLE  batches                IS 'Ids of the batches of visits that committed, or were abandoned; kept for some minutes.';
COMMENT ON TABLE  batches_0              IS 'The ids of one turn: a partition of batches.';
COMMENT ON TABLE  batches_1              IS 'The ids of the other turn: a partition of batches.';
COMMENT ON COLUMN batches.id             IS 'The id that the instance gave the batch.';
COMMENT ON COLUMN batches.turn           IS 'Which of the two tables had its turn: 0 or 1. An abandoned batch is in both.';
COMMENT ON COLUMN batches.schema_version IS 'What the instance that wrote it knows to write.';
COMMENT ON COLUMN batches.abandoned      IS 'The batch never committed, and no longer can.';

-- How far the sources of visits have been counted that can be read again. A batch moves the
-- position of what it counts in its own transaction, so that both come true or neither.
CREATE TABLE positions (
    app_id    integer     NOT NULL REFERENCES apps,
    source    text        NOT NULL,
    part      text        NOT NULL,
    next      bigint      NOT NULL DEFAULT 0,
    content   bytea,
    uncounted bit varying,
    used_at   timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (app_id, source, part),
    CONSTRAINT positions_next_from_zero       CHECK (next >= 0),
    CONSTRAINT positions_content_is_hash      CHECK (octet_length(content) = 32),
    CONSTRAINT positions_uncounted_up_to_next CHECK (
        CASE WHEN content IS NULL THEN uncounted IS NULL ELSE uncounted IS NOT NULL AND length(uncounted) = next END
    )
);

COMMENT ON TABLE  positions           IS 'How far visits of each source have been counted.';
COMMENT ON COLUMN positions.app_id    IS 'The app that they count for.';
COMMENT ON COLUMN positions.source    IS 'Where they come from. Of calls of POST /visits that may be repeated: "calls of key 7", by keys.id, or "calls" where no key was shown. Of imports: "logs". Of a queue, its kind, its cluster and its name, with what tells it from one that had this name before.';
COMMENT ON COLUMN positions.part      IS 'Which part of the source it is; of a call, its Idempotency-Key, with content behind it where no key was shown; of a log, its logs.id; of a Kafka topic, the partition.';
COMMENT ON COLUMN positions.next      IS 'Up to here all is counted that could be; of a call, how many of its items; of a log, how many of its bytes; of a queue, the offset or sequence of the message that comes next.';
COMMENT ON COLUMN positions.content   IS 'The SHA-256 of a call''s body; null where the source is none of calls.';
COMMENT ON COLUMN positions.uncounted IS 'Of a call, a bit for each item before next: 1 where it was not counted, since something was wrong with it, or it was skipped; null where the source is none of calls.';
COMMENT ON COLUMN positions.used_at   IS 'When somebody last began to read from here.';

-- Calls go by age.
CREATE INDEX positions_of_calls_by_age ON positions (used_at) WHERE content IS NOT NULL;

-- Messages of queues that could not be counted, for a few days: a batch that passes one writes it
-- here in its own transaction. Nobody who visited can be told from it: addresses, visitors and all
-- else but the URI are struck out of the texts.
--
-- It has no foreign key: whoever writes here has moved the position before, which goes with the
-- app.
CREATE TABLE refused (
    app_id     integer     NOT NULL,
    source     text        NOT NULL,
    part       text        NOT NULL,
    position   bigint      NOT NULL,
    refused_at timestamptz NOT NULL DEFAULT now(),
    reason     text        NOT NULL,
    beginning  text        NOT NULL,

    PRIMARY KEY (app_id, source, part, position),
    CONSTRAINT refused_texts_are_short CHECK (octet_length(reason) <= 1000 AND octet_length(beginning) <= 1000)
);

COMMENT ON TABLE  refused            IS 'Messages of queues that could not be counted, for 7 days: the last 1,000 of each part.';
COMMENT ON COLUMN refused.app_id     IS 'The app for which they came.';
COMMENT ON COLUMN refused.source     IS 'The queue, as positions has it.';
COMMENT ON COLUMN refused.part       IS 'The part of it, likewise.';
COMMENT ON COLUMN refused.position   IS 'The place of the message there; of messages that the queue no longer had, the first place.';
COMMENT ON COLUMN refused.refused_at IS 'When it was passed by.';
COMMENT ON COLUMN refused.reason     IS 'Why it could not be counted.';
COMMENT ON COLUMN refused.beginning  IS 'The beginning of its text, with all struck out but names of fields, URIs without their queries, and times.';

-- They go by age.
CREATE INDEX refused_by_age ON refused (refused_at);

-- Ids by which callers make visits repeatable, one by one. A batch claims those of its visits
-- before anything else in its own transaction: a visit is counted with its id, or not at all.
--
-- It has no foreign key, for the reason for which visits has none: a batch of a deleted app fails
-- on its counters.
CREATE TABLE visit_ids (
    app_id integer NOT NULL,
    day_id integer NOT NULL,
    id     text    NOT NULL COLLATE "C",

    PRIMARY KEY (app_id, id),
    CONSTRAINT visit_ids_length CHECK (octet_length(id) BETWEEN 1 AND 64)
);

COMMENT ON TABLE  visit_ids        IS 'Visits that callers have given an id, for some days: each has been counted.';
COMMENT ON COLUMN visit_ids.app_id IS 'The app that the visit counted for.';
COMMENT ON COLUMN visit_ids.day_id IS 'The day on which it came, like 20190629, in UTC.';
COMMENT ON COLUMN visit_ids.id     IS 'The id, as the caller gave it.';

-- Ids go by age.
CREATE INDEX visit_ids_by_age ON visit_ids (day_id);

-- Logs that are imported, known by the bytes that they have claimed, whatever their file is called.
-- A log has for itself the lines that it has claimed: no other one counts them. Lines are claimed,
-- with the hashes by which they are found in other files, before any of them is counted.
CREATE TABLE logs (
    id        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id    integer     NOT NULL REFERENCES apps,
    claimed   bigint      NOT NULL,
    lines     bigint      NOT NULL,
    begun_at  timestamptz NOT NULL DEFAULT now(),
    used_at   timestamptz NOT NULL DEFAULT now(),
    last_hour integer     NOT NULL,
    hash      bytea       NOT NULL,
    file      text        NOT NULL,
    rules     text        NOT NULL,
    skips     bigint[]    NOT NULL,

    CONSTRAINT logs_are_different     UNIQUE (app_id, hash),
    CONSTRAINT logs_hash_is_sha256    CHECK (octet_length(hash) = 32),
    CONSTRAINT logs_lines_have_bytes  CHECK (lines BETWEEN 0 AND claimed),
    CONSTRAINT logs_skips_are_pairs   CHECK (cardinality(skips) % 2 = 0)
);

COMMENT ON TABLE  logs           IS 'Logs that are imported. positions has how far each was counted.';
COMMENT ON COLUMN logs.id        IS 'The log''s number.';
COMMENT ON COLUMN logs.app_id    IS 'The app that its visits count for.';
COMMENT ON COLUMN logs.claimed   IS 'How many of its bytes, unpacked, are its own to count: whole lines.';
COMMENT ON COLUMN logs.lines     IS 'How many lines these are.';
COMMENT ON COLUMN logs.begun_at  IS 'When it was first imported.';
COMMENT ON COLUMN logs.used_at   IS 'When it was last imported.';
COMMENT ON COLUMN logs.last_hour IS 'The latest hour of its lines, as log_lines has it.';
COMMENT ON COLUMN logs.hash      IS 'The SHA-256 of the bytes that it has claimed: a file that begins with them is this log.';
COMMENT ON COLUMN logs.file      IS 'The file that had it last.';
COMMENT ON COLUMN logs.rules     IS 'What of it counts, as flags of import; empty: what counts by default.';
COMMENT ON COLUMN logs.skips     IS 'Lines of it that other logs had claimed before, each part by the number of its first line, from 0, and of the first one behind it.';

-- A line is found by the hour that it shows, so that an import reads what was claimed of the hours
-- of its own lines, and not all that the app ever had. A stretch has few enough lines to be stored
-- in one piece.
CREATE TABLE log_lines (
    app_id integer NOT NULL,
    log_id bigint  NOT NULL REFERENCES logs ON DELETE CASCADE,
    line   bigint  NOT NULL,
    hour   integer NOT NULL,
    hashes bytea   NOT NULL,

    PRIMARY KEY (log_id, line),
    CONSTRAINT log_lines_hashes_of_8_bytes CHECK (octet_length(hashes) > 0 AND octet_length(hashes) % 8 = 0)
);

COMMENT ON TABLE  log_lines        IS 'Lines of logs, in stretches of an hour, by which they are found in other files.';
COMMENT ON COLUMN log_lines.app_id IS 'The app of the log.';
COMMENT ON COLUMN log_lines.log_id IS 'The log.';
COMMENT ON COLUMN log_lines.line   IS 'The number of the first line, from 0.';
COMMENT ON COLUMN log_lines.hour   IS 'The hour that the lines show, since 1970, by whatever clock they show.';
COMMENT ON COLUMN log_lines.hashes IS 'The XXH64 of each line, in 8 bytes, the highest first.';

CREATE INDEX log_lines_by_hour ON log_lines (app_id, hour);

-- +goose Down
DROP TABLE log_lines;
DROP TABLE logs;
DROP TABLE visit_ids;
DROP TABLE refused;
DROP TABLE positions;
DROP TABLE batches;
DROP FUNCTION batches_clock();
DROP TABLE visits;
DROP TABLE visitors;
