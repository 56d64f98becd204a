-- Who counts: one row an app. Everything else in this schema belongs to an app.
--
-- Tables live in the schema `footfall`; every connection of Footfall has it as its search_path, so names
-- stand here without it.

-- +goose Up
CREATE TABLE apps (
    id          integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text        NOT NULL,
    tz          text        NOT NULL DEFAULT 'UTC',
    ipv6_prefix smallint    NOT NULL DEFAULT 64,
    access      text        NOT NULL DEFAULT 'sites',
    sites       text[]      NOT NULL DEFAULT '{}',
    keep_query  text[]      NOT NULL DEFAULT '{}',
    created_at  timestamptz NOT NULL DEFAULT now(),

    CONSTRAINT apps_name_is_unique     UNIQUE (name),
    CONSTRAINT apps_name_is_a_word     CHECK (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    CONSTRAINT apps_tz_is_known        CHECK (now() AT TIME ZONE tz IS NOT NULL),
    CONSTRAINT apps_access_is_known    CHECK (access IN ('open', 'sites', 'key')),
    -- A visitor narrower than a /32 would be a whole provider, wider than a /128 does not exist.
    CONSTRAINT apps_ipv6_prefix_range  CHECK (ipv6_prefix BETWEEN 32 AND 128),
    CONSTRAINT apps_sites_no_nulls     CHECK (array_position(sites, NULL) IS NULL),
    CONSTRAINT apps_keep_query_no_nulls CHECK (array_position(keep_query, NULL) IS NULL)
);

COMMENT ON TABLE  apps             IS 'Tenants: every visit belongs to one app.';
COMMENT ON COLUMN apps.id          IS 'The app''s number in every other table.';
COMMENT ON COLUMN apps.name        IS 'What callers write as app=…';
COMMENT ON COLUMN apps.tz          IS 'IANA time zone whose natural days the app counts in; fixed once something is counted.';
COMMENT ON COLUMN apps.ipv6_prefix IS 'IPv6 addresses that share this many leading bits are one visitor; fixed once something is counted.';
COMMENT ON COLUMN apps.access      IS 'Who may count. open: anybody, and whatever ip or visitor they assert is believed. sites: anybody, for the sites listed; asserting needs a key. key: as sites, and each visit needs a key.';
COMMENT ON COLUMN apps.sites       IS 'The sites that this app counts, host or host:port, *.host for every subdomain. Empty where access is open: every site.';
COMMENT ON COLUMN apps.keep_query  IS 'Query parameters that distinguish pages, in the order in which a target writes them.';
COMMENT ON COLUMN apps.created_at  IS 'When the app was added.';

-- Numbers that rise when something changes which running instances keep in memory.
CREATE TABLE epochs (
    name  text   PRIMARY KEY,
    value bigint NOT NULL DEFAULT 0,

    CONSTRAINT epochs_value_counts_up CHECK (value >= 0)
);

COMMENT ON TABLE  epochs       IS 'One row a kind of cached knowledge; its value rises in the transaction that makes copies of it stale.';
COMMENT ON COLUMN epochs.name  IS 'apps: rows of apps changed.';
COMMENT ON COLUMN epochs.value IS 'How often it has changed.';

INSERT INTO epochs (name) VALUES ('apps');

-- A trigger, so that an UPDATE typed into psql reaches the running instances as surely as `footfall app set`.
-- +goose StatementBegin
CREATE FUNCTION apps_changed() RETURNS trigger
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    UPDATE epochs SET value = value + 1 WHERE name = 'apps';
    PERFORM pg_notify('footfall_apps', '');
    RETURN NULL;
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION apps_changed() IS 'Raises the epoch of apps and wakes the instances that listen on footfall_apps.';

CREATE TRIGGER apps_changed
    AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON apps
    FOR EACH STATEMENT EXECUTE FUNCTION apps_changed();

-- An instance that keeps apps in memory holds a shared advisory lock on the epoch that it has read.
-- +goose StatementBegin
CREATE FUNCTION apps_epochs_held_before(epoch bigint) RETURNS bigint
LANGUAGE sql STABLE
SET search_path = footfall, pg_temp
AS $$
    SELECT count(*)
    FROM pg_locks
    WHERE locktype = 'advisory'
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND classid::bigint = hashtext('footfall.apps')::bigint & 4294967295 -- an oid is unsigned, a hash is not
      AND objid::bigint < epoch
      AND objsubid = 2 -- a lock with two keys
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION apps_epochs_held_before(bigint) IS 'How many running instances have not yet taken over the apps of this epoch.';

-- +goose Down
DROP FUNCTION apps_epochs_held_before(bigint);
DROP TABLE apps;
DROP FUNCTION apps_changed();
DROP TABLE epochs;
