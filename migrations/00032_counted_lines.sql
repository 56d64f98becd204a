-- The k-th occurrence of a line in an access log file counts if the line was counted fewer than k
-- times before. These tables record which lines have been counted.

-- +goose Up
-- log_hours and counted_lines have no foreign key to apps, because a batch must not wait for the
-- app's row while it holds a position. When an app is deleted, their rows are deleted after the app's
-- positions. Without a position, no batch counts a line.
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

-- +goose Down
DROP TABLE read_logs;
DROP TABLE counted_lines;
DROP TABLE log_hours;
