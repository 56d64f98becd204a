-- A line of an access log counts by one rule: the k-th time a line is in a file, it counts if fewer
-- than k of it have been counted. These tables record which lines have been counted.

-- +goose Up
-- No foreign key to apps: a batch must not wait for the app's row while it holds a position. Deleting
-- an app deletes its rows after its positions, without which no batch counts a line.
CREATE TABLE log_hours (
    app_id   integer       NOT NULL,
    hour     integer       NOT NULL,
    servers  text[]        NOT NULL DEFAULT '{}',
    versions bigint[]      NOT NULL DEFAULT '{}',
    gone     bigint[]      NOT NULL DEFAULT '{}',
    latest   timestamptz[] NOT NULL DEFAULT '{}',

    PRIMARY KEY (app_id, hour),
    CONSTRAINT log_hours_arrays_are_one_table CHECK (
        cardinality(versions) = cardinality(servers) AND cardinality(gone) = cardinality(servers) AND cardinality(latest) = cardinality(servers)
    )
) WITH (fillfactor = 70);

COMMENT ON TABLE  log_hours          IS 'The hours of access logs. The arrays have one element for each server. A batch that counts lines locks the rows of their hours.';
COMMENT ON COLUMN log_hours.app_id   IS 'The app.';
COMMENT ON COLUMN log_hours.hour     IS 'The hour in the line, since 1970, by the clock that the line shows.';
COMMENT ON COLUMN log_hours.servers  IS 'The servers that wrote the lines, as --server named them. Empty text: no name was given.';
COMMENT ON COLUMN log_hours.versions IS 'Rises by one for each counted line, and when lines are forgotten. It never falls.';
COMMENT ON COLUMN log_hours.gone     IS 'The version up to which lines were forgotten: versions - gone lines are recorded in counted_lines.';
COMMENT ON COLUMN log_hours.latest   IS 'The latest time of a counted line.';

-- Blocks are so small that PostgreSQL neither compresses them nor stores them outside the row.
CREATE TABLE counted_lines (
    app_id integer NOT NULL,
    hour   integer NOT NULL,
    server text    NOT NULL,
    first  bigint  NOT NULL,
    hashes bytea   NOT NULL,

    PRIMARY KEY (app_id, hour, server, first),
    CONSTRAINT counted_lines_first_from_zero  CHECK (first >= 0),
    CONSTRAINT counted_lines_are_short_blocks CHECK (octet_length(hashes) BETWEEN 8 AND 1600 AND octet_length(hashes) % 8 = 0)
);

COMMENT ON TABLE  counted_lines        IS 'Counted lines of access logs, in blocks.';
COMMENT ON COLUMN counted_lines.app_id IS 'The app.';
COMMENT ON COLUMN counted_lines.hour   IS 'The hour, as in log_hours.';
COMMENT ON COLUMN counted_lines.server IS 'The server that wrote the lines. Empty: no name was given.';
COMMENT ON COLUMN counted_lines.first  IS 'The version of the hour before the first line of the block.';
COMMENT ON COLUMN counted_lines.hashes IS 'A keyed hash of each line, 8 bytes each, in the order in which they were counted. A line that was counted twice is there twice.';

CREATE TABLE read_logs (
    app_id  integer     NOT NULL REFERENCES apps,
    options bytea       NOT NULL,
    inode   text        NOT NULL,
    run     text        NOT NULL,
    state   text        NOT NULL DEFAULT '',
    place   bigint      NOT NULL DEFAULT 0,
    sum     bigint      NOT NULL DEFAULT 0,
    start   bigint      NOT NULL DEFAULT 0,
    lines   bigint      NOT NULL DEFAULT 0,
    read_at timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (app_id, options, inode),
    CONSTRAINT read_logs_options_are_a_hash CHECK (octet_length(options) = 32)
);

COMMENT ON TABLE  read_logs         IS 'Log files that an import has read. While a file is unchanged, it is not read again.';
COMMENT ON COLUMN read_logs.app_id  IS 'The app.';
COMMENT ON COLUMN read_logs.options IS 'A hash of the server, the site, the rules and the settings of the app that decide which lines count.';
COMMENT ON COLUMN read_logs.inode   IS 'Device and inode of the file.';
COMMENT ON COLUMN read_logs.run     IS 'The import that reads or has read it.';
COMMENT ON COLUMN read_logs.state   IS 'Size and time of the last change of the file when all of it had been counted. Empty: not all of it was.';
COMMENT ON COLUMN read_logs.place   IS 'How many of its bytes, from the beginning, were read and counted. 0: not known, or the file is packed.';
COMMENT ON COLUMN read_logs.sum     IS 'A keyed XXH64 of these bytes.';
COMMENT ON COLUMN read_logs.start   IS 'The byte from which lines are read again if the file grows: no line before it is of the last ten minutes.';
COMMENT ON COLUMN read_logs.lines   IS 'The number of lines before start.';
COMMENT ON COLUMN read_logs.read_at IS 'When the import began to read it.';

-- +goose Down
DROP TABLE read_logs;
DROP TABLE counted_lines;
DROP TABLE log_hours;
