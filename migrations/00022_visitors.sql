-- How visitors are told apart, in three ways that 0.1.0 does not know.

-- +goose Up
-- By address and browser. An instance of 0.1.0 would tell them apart by their address for such an app:
-- once there is one, tell_browsers() has it refused, by the version that its batches bring. Until then
-- it counts beside.
ALTER TABLE apps DROP CONSTRAINT apps_visitor_is_known;
ALTER TABLE apps
    ADD CONSTRAINT apps_visitor_is_known CHECK (visitor IN ('address', 'id', 'hashed', 'browser', 'daily'));

COMMENT ON COLUMN apps.visitor IS 'What tells visitors apart: address, id (said by the caller), hashed (keyed hash of the address), browser (one of the address and the names of browser and system), daily (one that turns each day). Fixed once something is counted.';

ALTER TABLE batches DROP CONSTRAINT batches_by_this_version;
ALTER TABLE batches
    ADD CONSTRAINT batches_by_this_version CHECK (schema_version IN (2, 3)) NOT VALID;

-- By hashes in place of the addresses that an app has counted by (functions/hash_visitors.sql); and, of
-- an app that was loaded from an export, as the visitors whom it had: a hash of an address or an id is
-- keyed with the number of the app that it was made for, too.
ALTER TABLE apps
    ADD COLUMN IF NOT EXISTS held_until  timestamptz,
    ADD COLUMN IF NOT EXISTS hashed_from integer NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS hashed_as   integer;
ALTER TABLE apps
    ADD CONSTRAINT apps_hashed_as_is_of_hashes CHECK (hashed_as IS NULL OR visitor <> 'address');

COMMENT ON COLUMN apps.held_until  IS 'Until then nothing is counted for the app, or until it is null: its addresses are hashed.';
COMMENT ON COLUMN apps.hashed_from IS 'Sketches of days before it are of addresses, those from it on of hashes. 0: all are of one kind.';
COMMENT ON COLUMN apps.hashed_as   IS 'The number of the app as which its visitors are hashed, where it was loaded from an export. Null: its own.';

-- What has been counted by stays as it is, also where somebody types an UPDATE into psql, unless this
-- transaction has put hashes in place of the addresses.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION apps_count_as_they_began() RETURNS trigger
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF (OLD.tz, OLD.ipv6_prefix, OLD.visitor) = (NEW.tz, NEW.ipv6_prefix, 'address')
       AND NEW.visitor = 'hashed'
       AND current_setting('footfall.hashed', true) = concat_ws(' ', NEW.id, pg_current_xact_id()) THEN
        RETURN NULL;
    END IF;
    PERFORM FROM apps AS a WHERE a.id = NEW.id FOR UPDATE;
    IF EXISTS (SELECT FROM pages AS p WHERE p.app_id = NEW.id) THEN
        RAISE EXCEPTION 'app % has counted by its time zone, visitor mode, secret and IPv6 prefix, which stay what they are', NEW.name
            USING ERRCODE = '23514', CONSTRAINT = 'apps_count_as_they_began', HINT = 'Add another app.';
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION apps_count_as_they_began() RETURNS trigger
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    PERFORM FROM apps AS a WHERE a.id = NEW.id FOR UPDATE;
    IF EXISTS (SELECT FROM pages AS p WHERE p.app_id = NEW.id) THEN
        RAISE EXCEPTION 'app % has counted by its time zone, visitor mode, secret and IPv6 prefix, which stay what they are', NEW.name
            USING ERRCODE = '23514', CONSTRAINT = 'apps_count_as_they_began', HINT = 'Add another app.';
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
ALTER TABLE apps
    DROP COLUMN held_until CASCADE,
    DROP COLUMN hashed_from CASCADE,
    DROP COLUMN hashed_as CASCADE;
ALTER TABLE batches DROP CONSTRAINT batches_by_this_version;
ALTER TABLE batches
    ADD CONSTRAINT batches_by_this_version CHECK (schema_version = 2) NOT VALID;
ALTER TABLE apps DROP CONSTRAINT apps_visitor_is_known;
ALTER TABLE apps
    ADD CONSTRAINT apps_visitor_is_known CHECK (visitor IN ('address', 'id', 'hashed', 'daily'));
COMMENT ON COLUMN apps.visitor IS 'What tells visitors apart: address, id (said by the caller), hashed (keyed hash of the address), daily (one that turns each day). Fixed once something is counted.';
