-- A log is its bytes from the beginning: how many of them are counted, and the keyed hash of exactly
-- these. Beside it stands a sample of its lines, by which they are found in other files.

-- +goose Up
ALTER TABLE apps ADD COLUMN log_key bytea;
ALTER TABLE apps ADD CONSTRAINT apps_log_key_length CHECK (octet_length(log_key) = 32);

COMMENT ON COLUMN apps.log_key IS 'Of an app whose visitors are addresses: the random key of the hashes by which its logs are known. Null: it has imported none, or its hashes are keyed with the secret.';

ALTER TABLE logs
    ADD COLUMN counted      bigint,
    ADD COLUMN counted_hash bytea,
    ADD COLUMN beginning    bigint,
    ADD COLUMN look         bigint  NOT NULL DEFAULT 0,
    ADD COLUMN server       text    NOT NULL DEFAULT '',
    ADD COLUMN inode        text    NOT NULL DEFAULT '',
    ADD COLUMN state        text    NOT NULL DEFAULT '',
    ADD COLUMN told         text    NOT NULL DEFAULT '',
    ADD COLUMN after        timestamptz,
    ADD COLUMN after_lines  bytea,
    ADD COLUMN last_at      timestamptz,
    ADD COLUMN tail         bytea   NOT NULL DEFAULT '',
    ALTER COLUMN last_hour  SET DEFAULT 0,
    ALTER COLUMN skips      SET DEFAULT '{}';

ALTER TABLE logs DROP CONSTRAINT logs_are_different;
-- Rows of 0.1.0 stay as they are until a program that has the key hashes them anew. From now on no
-- import of 0.1.0 begins a log, or claims more of one: it would not see what is counted by the others.
ALTER TABLE logs ADD CONSTRAINT logs_know_what_is_counted CHECK (counted IS NOT NULL) NOT VALID;
ALTER TABLE logs ADD CONSTRAINT logs_counted_range        CHECK (counted BETWEEN 0 AND claimed);
ALTER TABLE logs ADD CONSTRAINT logs_counted_hash_length  CHECK (octet_length(counted_hash) = 32);
ALTER TABLE logs ADD CONSTRAINT logs_told_is_known        CHECK (told IN ('', 'another', 'counted'));
ALTER TABLE logs ADD CONSTRAINT logs_after_has_lines      CHECK ((after IS NULL) = (after_lines IS NULL));

CREATE INDEX logs_by_beginning ON logs (app_id, beginning);

COMMENT ON TABLE  logs              IS 'Logs that are imported: how far each was counted, and by what it is known again.';
COMMENT ON COLUMN logs.claimed      IS 'How many of its bytes, unpacked, were there when it was last looked at: whole lines.';
COMMENT ON COLUMN logs.lines        IS 'How many lines were counted, or left out.';
COMMENT ON COLUMN logs.last_hour    IS 'Used by 0.1.0.';
COMMENT ON COLUMN logs.hash         IS 'The keyed hash of the bytes that were there when it was last looked at. Of 0.1.0, until it is counted here: their SHA-256.';
COMMENT ON COLUMN logs.skips        IS 'Of a log that 0.1.0 has counted in part: lines of it that other logs had, each part by the number of its first line, from 0, and of the first one behind it.';
COMMENT ON COLUMN logs.counted      IS 'How many of its bytes, unpacked, are counted. Null: 0.1.0 had it, and positions has how many.';
COMMENT ON COLUMN logs.counted_hash IS 'The keyed hash of these bytes: a file that begins with them is this log. Null: not known of a log that 0.1.0 has counted in part, which is known by hash.';
COMMENT ON COLUMN logs.beginning    IS 'The keyed hash of its first line that is no header. Null: not known.';
COMMENT ON COLUMN logs.look         IS 'Rises when a file with other bytes behind the counted ones takes its place: who looked before looks again.';
COMMENT ON COLUMN logs.server       IS 'The server that wrote it, as it was told; empty: none was.';
COMMENT ON COLUMN logs.inode        IS 'Device and inode of the file that had it last; empty: standard input.';
COMMENT ON COLUMN logs.state        IS 'Size and time of the last change of that file, where it had nothing behind claimed: as long as it has both, it has nothing new. Empty: it had more, or had just been changed.';
COMMENT ON COLUMN logs.told         IS 'What was told of it: another: it is another log, whatever lines it shares; counted: each of its files goes on behind what was counted; empty: neither.';
COMMENT ON COLUMN logs.after        IS 'Lines of this second and before it are left out. Null: none are.';
COMMENT ON COLUMN logs.after_lines  IS 'The keyed hashes, 8 bytes each, of lines of that very second which another log had counted: these alone of it are left out.';
COMMENT ON COLUMN logs.last_at      IS 'The latest time of a line that was counted, or left out. Null: none had one.';
COMMENT ON COLUMN logs.tail         IS 'Its last lines up to counted, in their order, 12 bytes each: a keyed hash, and how many seconds before last_at its time is.';

CREATE TABLE log_samples (
    app_id integer NOT NULL,
    log_id bigint  NOT NULL,
    hour   integer NOT NULL,
    sample bytea   NOT NULL,

    PRIMARY KEY (log_id, hour),
    CONSTRAINT log_samples_log_id_fkey    FOREIGN KEY (log_id) REFERENCES logs ON DELETE CASCADE,
    CONSTRAINT log_samples_are_of_20_bytes CHECK (octet_length(sample) % 20 = 8 AND octet_length(sample) BETWEEN 28 AND 8 + 256 * 20)
);

CREATE INDEX log_samples_by_hour ON log_samples (app_id, hour);

COMMENT ON TABLE  log_samples        IS 'Of each log and hour the lines with the smallest hashes, by which logs are compared.';
COMMENT ON COLUMN log_samples.app_id IS 'The app of the log.';
COMMENT ON COLUMN log_samples.log_id IS 'The log.';
COMMENT ON COLUMN log_samples.hour   IS 'The hour that the lines show, since 1970, by whatever clock they show.';
COMMENT ON COLUMN log_samples.sample IS 'The hash below which all lines are here, in 8 bytes; then in order of hashes, 20 bytes each, up to 256 different lines: the keyed hash, the byte of the log where the line stands first, and how often it is in this hour.';

-- +goose Down
DROP TABLE log_samples;
ALTER TABLE logs DROP CONSTRAINT logs_know_what_is_counted;
ALTER TABLE logs
    DROP COLUMN counted CASCADE,
    DROP COLUMN counted_hash,
    DROP COLUMN beginning,
    DROP COLUMN look,
    DROP COLUMN server,
    DROP COLUMN inode,
    DROP COLUMN state,
    DROP COLUMN told,
    DROP COLUMN after,
    DROP COLUMN after_lines,
    DROP COLUMN last_at,
    DROP COLUMN tail,
    ALTER COLUMN last_hour DROP DEFAULT,
    ALTER COLUMN skips DROP DEFAULT;
-- 0.1.0 knows a log by another hash, and begins each anew.
DELETE FROM logs;
ALTER TABLE logs ADD CONSTRAINT logs_are_different UNIQUE (app_id, hash);
ALTER TABLE apps DROP COLUMN log_key CASCADE;
