-- The addresses that an app has counted by may be hashed later: see functions/hash_visitors.sql.

-- +goose Up
ALTER TABLE apps
    ADD COLUMN IF NOT EXISTS held_until  timestamptz,
    ADD COLUMN IF NOT EXISTS hashed_from integer NOT NULL DEFAULT 0;

COMMENT ON COLUMN apps.held_until  IS 'Until then nothing is counted for the app, or until it is null: its addresses are hashed.';
COMMENT ON COLUMN apps.hashed_from IS 'Sketches of days before it are of addresses, those from it on of hashes. 0: all are of one kind.';

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
    DROP COLUMN hashed_from CASCADE;
