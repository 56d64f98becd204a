-- Who counts, and who may: one row an app. Everything else in this schema belongs to an app.

-- +goose Up
-- A setting that is null is the service's to choose: strict where the caller is a stranger, nothing
-- where an app believes what it is told.
CREATE TABLE apps (
    id            integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name          text        NOT NULL,
    tz            text        NOT NULL DEFAULT 'UTC',
    ipv6_prefix   smallint    NOT NULL DEFAULT 64,
    access        text        NOT NULL DEFAULT 'sites',
    sites         text[]      NOT NULL DEFAULT '{}',
    keep_query    text[]      NOT NULL DEFAULT '{}',
    created_at    timestamptz NOT NULL DEFAULT now(),
    visitor       text        NOT NULL DEFAULT 'address',
    secret_id     bytea,
    respect_dnt   boolean     NOT NULL DEFAULT false,
    bots          text,
    ignore        text[]      NOT NULL DEFAULT '{}',
    max_requests  integer,
    max_new_pages integer,
    deleted_at    timestamptz,
    retain_days   integer     NOT NULL DEFAULT 35,
    forget_days   integer     NOT NULL DEFAULT 0,
    public_counts text        NOT NULL DEFAULT 'off',
    tags          text[]      NOT NULL DEFAULT '{source,campaign,country,language,device,system,browser,hour}',

    CONSTRAINT apps_name_is_unique         UNIQUE (name),
    CONSTRAINT apps_name_is_a_word         CHECK (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    CONSTRAINT apps_tz_is_known            CHECK (now() AT TIME ZONE tz IS NOT NULL),
    CONSTRAINT apps_access_is_known        CHECK (access IN ('open', 'sites', 'key')),
    -- A visitor narrower than a /32 would be a whole provider, wider than a /128 does not exist.
    CONSTRAINT apps_ipv6_prefix_range      CHECK (ipv6_prefix BETWEEN 32 AND 128),
    CONSTRAINT apps_sites_no_nulls         CHECK (array_position(sites, NULL) IS NULL),
    CONSTRAINT apps_keep_query_no_nulls    CHECK (array_position(keep_query, NULL) IS NULL),
    CONSTRAINT apps_visitor_is_known       CHECK (visitor IN ('address', 'id', 'hashed', 'daily')),
    -- Visitors keyed with one secret are not those keyed with another: which one it is stays with
    -- the app.
    CONSTRAINT apps_secret_keys_visitors   CHECK ((visitor = 'address') = (secret_id IS NULL)),
    CONSTRAINT apps_secret_id_length       CHECK (octet_length(secret_id) = 8),
    CONSTRAINT apps_bots_is_known          CHECK (bots IN ('count', 'skip')),
    -- Where each visit needs a key, nobody counts without one.
    CONSTRAINT apps_public_counts_are_known CHECK (public_counts IN ('off', 'read') OR (public_counts = 'count' AND access <> 'key')),
    CONSTRAINT apps_ignore_no_nulls        CHECK (array_position(ignore, NULL) IS NULL),
    CONSTRAINT apps_limits_are_not_negative CHECK (least(max_requests, max_new_pages) >= 0),
    CONSTRAINT apps_retain_days_range      CHECK (retain_days BETWEEN 0 AND 36500),
    -- The chart of a day rests on hour.
    CONSTRAINT apps_tags_have_hour         CHECK (array_position(tags, NULL) IS NULL AND 'hour' = ANY (tags)),
    -- A visitor who is forgotten has no visits left that would name them.
    CONSTRAINT apps_forget_days_range      CHECK (forget_days = 0 OR (retain_days > 0 AND forget_days BETWEEN retain_days AND 36500))
);

COMMENT ON TABLE  apps               IS 'Tenants: every visit belongs to one app.';
COMMENT ON COLUMN apps.id            IS 'The app''s number in every other table.';
COMMENT ON COLUMN apps.name          IS 'What callers write as app=…';
COMMENT ON COLUMN apps.tz            IS 'IANA time zone whose natural days the app counts in; fixed once something is counted.';
COMMENT ON COLUMN apps.ipv6_prefix   IS 'IPv6 addresses that share this many leading bits are one visitor; fixed once something is counted.';
COMMENT ON COLUMN apps.access        IS 'Who may count. open: anybody, and whatever ip or visitor they assert is believed. sites: anybody, for the sites listed; asserting needs a key. key: as sites, and each visit needs a key.';
COMMENT ON COLUMN apps.sites         IS 'The sites that this app counts, host or host:port, *.host for every subdomain. Empty where access is open: every site.';
COMMENT ON COLUMN apps.keep_query    IS 'Query parameters that distinguish pages, in the order in which a target writes them.';
COMMENT ON COLUMN apps.created_at    IS 'When the app was added.';
COMMENT ON COLUMN apps.visitor       IS 'What tells visitors apart: address, id (said by the caller), hashed (keyed hash of the address), daily (one that turns each day). Fixed once something is counted.';
COMMENT ON COLUMN apps.secret_id     IS 'Tells which secret keys the hashes of visitors, and nothing else of it. Null where addresses are stored.';
COMMENT ON COLUMN apps.respect_dnt   IS 'Visits whose browser asks not to be tracked (DNT, Sec-GPC) are not counted.';
COMMENT ON COLUMN apps.bots          IS 'count or skip crawlers. Null: skipped, where the visit is of the caller''s own address and access is not open.';
COMMENT ON COLUMN apps.ignore        IS 'Networks, ids of visitors, and hosts that visitors come from (from:…), whose visits are not counted.';
COMMENT ON COLUMN apps.max_requests  IS 'Requests a minute from one address (IPv6: /64). 0: any number. Null: as the service chooses.';
COMMENT ON COLUMN apps.max_new_pages IS 'New pages and sites a day; a visit to one more counts for the site''s page (other). 0: any number. Null: as the service chooses.';
COMMENT ON COLUMN apps.deleted_at    IS 'Since when its deletion has been under way; it counts nothing any more.';
COMMENT ON COLUMN apps.retain_days   IS 'For how many days rows of visits are kept. 0: for ever. The sums stay in any case.';
COMMENT ON COLUMN apps.forget_days   IS 'Visitors who have not come to a site for so many days are forgotten there; if they come again they are new. 0: never.';
COMMENT ON COLUMN apps.public_counts IS 'What badges do, which anybody may show. off: nothing. read: show sums of pages and sites. count: the same, and count visits where they are asked to.';
COMMENT ON COLUMN apps.tags          IS 'The names of the tags that are counted: built-in ones, of which hour always is, and the app''s own.';

-- Running instances keep apps and keys in memory, and what they have looked up of targets and
-- visitors. These numbers tell them when that no longer holds.
CREATE TABLE epochs (
    name  text   PRIMARY KEY,
    value bigint NOT NULL DEFAULT 0,

    CONSTRAINT epochs_value_counts_up CHECK (value >= 0)
);

COMMENT ON TABLE  epochs       IS 'Numbers that only rise: what running instances remember, and when they did what only one of them needs to do.';
COMMENT ON COLUMN epochs.name  IS 'apps: rows of apps, keys, shares or offsets changed. erasures: rows of visitors or pages were removed, or became others'', or an app got its first people. imports: visitors came in past the instances that run. offsets: rows of offsets changed. retention: what need not be kept was let go. people: a new period of people began.';
COMMENT ON COLUMN epochs.value IS 'apps, erasures, imports, offsets: how often. retention: the last day on which it was, like 20190629, in the last time zone in which it begins. people: the period of 35 days that is open, since 1970.';

INSERT INTO epochs (name) VALUES ('apps'), ('erasures'), ('imports'), ('offsets'), ('retention');

-- A trigger, so that an UPDATE typed into psql reaches the running instances as surely as `footfall
-- app set`.
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

CREATE TABLE keys (
    id         integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id     integer     NOT NULL REFERENCES apps,
    created_at timestamptz NOT NULL DEFAULT now(),
    used_at    timestamptz,
    revoked_at timestamptz,
    name       text        NOT NULL,
    hash       bytea       NOT NULL,
    scopes     text[]      NOT NULL,

    CONSTRAINT keys_name_is_unique  UNIQUE (name),
    CONSTRAINT keys_hash_is_unique  UNIQUE (hash),
    CONSTRAINT keys_hash_is_sha256  CHECK (octet_length(hash) = 32),
    CONSTRAINT keys_scopes_are_known CHECK (cardinality(scopes) > 0 AND scopes <@ '{count,assert,read}')
);

COMMENT ON TABLE  keys            IS 'Keys with which callers show that they are of an app. The key itself is stored nowhere.';
COMMENT ON COLUMN keys.id         IS 'The key''s number.';
COMMENT ON COLUMN keys.app_id     IS 'The app whose visits and numbers it opens.';
COMMENT ON COLUMN keys.created_at IS 'When it was made.';
COMMENT ON COLUMN keys.used_at    IS 'When it was used last, to about a minute.';
COMMENT ON COLUMN keys.revoked_at IS 'Since when it opens nothing.';
COMMENT ON COLUMN keys.name       IS 'The beginning of the key, by which people speak of it.';
COMMENT ON COLUMN keys.hash       IS 'SHA-256 of the whole key, which has 256 random bits: nothing slower is needed.';
COMMENT ON COLUMN keys.scopes     IS 'count: count visits. assert: the same, and say who came. read: ask about a visitor, and for reports.';

-- Running instances keep keys in memory beside apps. Their use changes nothing there.
CREATE TRIGGER keys_changed
    AFTER INSERT OR DELETE OR TRUNCATE OR UPDATE OF app_id, hash, scopes, revoked_at ON keys
    FOR EACH STATEMENT EXECUTE FUNCTION apps_changed();

-- Links that show an app, or one site of it, to whoever has them.
CREATE TABLE shares (
    id         integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id     integer     NOT NULL REFERENCES apps,
    last_day   integer     NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz,
    name       text        NOT NULL,
    hash       bytea       NOT NULL,
    site       text,

    CONSTRAINT shares_name_is_unique UNIQUE (name),
    CONSTRAINT shares_hash_is_unique UNIQUE (hash),
    CONSTRAINT shares_hash_is_sha256 CHECK (octet_length(hash) = 32),
    CONSTRAINT shares_site_is_named  CHECK (site <> ''),
    -- Days of time zones may lie one beside those of UTC.
    CONSTRAINT shares_end            CHECK (make_date(last_day / 10000, last_day / 100 % 100, last_day % 100)
                                            BETWEEN (created_at AT TIME ZONE 'UTC')::date - 1 AND (created_at AT TIME ZONE 'UTC')::date + 1828)
);

COMMENT ON TABLE  shares            IS 'Links to pages of the dashboard. Whoever has one sees an app, or a site, without a key. The link itself is stored nowhere.';
COMMENT ON COLUMN shares.id         IS 'The link''s number.';
COMMENT ON COLUMN shares.app_id     IS 'The app that it shows.';
COMMENT ON COLUMN shares.last_day   IS 'The last day, in the app''s time zone, on which it shows anything, like 20190629; at most five years away.';
COMMENT ON COLUMN shares.created_at IS 'When it was made.';
COMMENT ON COLUMN shares.revoked_at IS 'Since when it shows nothing.';
COMMENT ON COLUMN shares.name       IS 'The beginning of what is random in it, by which people speak of it.';
COMMENT ON COLUMN shares.hash       IS 'SHA-256 of all that is random in it, which has 256 bits.';
COMMENT ON COLUMN shares.site       IS 'The one site that it shows. Null: all of the app.';

-- Running instances keep them in memory beside keys.
CREATE TRIGGER shares_changed
    AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON shares
    FOR EACH STATEMENT EXECUTE FUNCTION apps_changed();

-- What happened on a day that its numbers do not tell.
CREATE TABLE notes (
    id     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id integer NOT NULL REFERENCES apps,
    day_id integer NOT NULL,
    site   text,
    text   text    NOT NULL,

    CONSTRAINT notes_day_is_one      CHECK (make_date(day_id / 10000, day_id / 100 % 100, day_id % 100) BETWEEN '1991-01-01' AND '2999-12-31'),
    CONSTRAINT notes_site_is_named   CHECK (site <> ''),
    CONSTRAINT notes_text_is_a_line  CHECK (text ~ '^[^[:cntrl:][:space:]]([^[:cntrl:]]*[^[:cntrl:][:space:]])?$'),
    CONSTRAINT notes_text_is_short   CHECK (char_length(text) <= 200)
);

CREATE INDEX notes_of_days ON notes (app_id, day_id);

COMMENT ON TABLE  notes        IS 'What people have noted of days, to be shown beside the numbers: a release, a campaign, an outage.';
COMMENT ON COLUMN notes.id     IS 'The note''s number.';
COMMENT ON COLUMN notes.app_id IS 'The app of which it was noted.';
COMMENT ON COLUMN notes.day_id IS 'The day, in the app''s time zone, like 20190629.';
COMMENT ON COLUMN notes.site   IS 'The one site of which it was. Null: all of the app.';
COMMENT ON COLUMN notes.text   IS 'A sentence.';

-- Half of the key of an app whose visitors turn each day; the other half is the secret outside this
-- database. When a day is over its row goes, and with it the way from an address to that day's
-- visitor.
CREATE TABLE day_keys (
    day_id integer PRIMARY KEY,
    key    bytea   NOT NULL,

    CONSTRAINT day_keys_length CHECK (octet_length(key) = 32)
);

-- What the planner samples of a column it keeps in a table of its own, where keys would outlive
-- their days.
ALTER TABLE day_keys ALTER COLUMN key SET STATISTICS 0;

COMMENT ON TABLE  day_keys        IS 'Random keys of the days now under way, for apps whose visitors are daily.';
COMMENT ON COLUMN day_keys.day_id IS 'The day, like 20190629.';
COMMENT ON COLUMN day_keys.key    IS 'Hashed with the address; worth nothing without the secret that is kept elsewhere.';

-- +goose Down
DROP TABLE day_keys;
DROP TABLE notes;
DROP TABLE shares;
DROP TABLE keys;
DROP TABLE apps;
DROP FUNCTION apps_changed();
DROP TABLE epochs;
