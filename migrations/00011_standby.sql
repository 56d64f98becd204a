-- Whether COMMIT must wait for a synchronous standby: for everything that writes here.

-- +goose Up
INSERT INTO epochs (name) VALUES ('standby');

COMMENT ON COLUMN epochs.name  IS 'apps: rows of apps, keys, shares or offsets changed. erasures: rows of visitors or pages were removed, or became others'', or an app got its first people. imports: visitors came in past the instances that run. offsets: rows of offsets changed. retention: what need not be kept was let go. people: a new period of people began. standby: a synchronous standby is required from now on, or is not.';
COMMENT ON COLUMN epochs.value IS 'apps, erasures, imports, offsets: how often. retention: the last day on which it was, like 20190629, in the last time zone in which it begins. people: the period of 35 days that is open, since 1970. standby: odd while one is required; 0: nobody has said so yet.';

-- +goose Down
DELETE FROM epochs WHERE name = 'standby';
