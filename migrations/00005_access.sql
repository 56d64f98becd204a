-- Who may count, and as whom: settings of apps, keys, limits, and what is left of those who were erased.

-- +goose Up

-- A setting that is null is the service's to choose: strict where the caller is a stranger, nothing where an app
-- believes what it is told.
ALTER TABLE apps
    ADD COLUMN visitor       text    NOT NULL DEFAULT 'address',
    ADD COLUMN secret_id     bytea,
    ADD COLUMN respect_dnt   boolean NOT NULL DEFAULT false,
    ADD COLUMN bots          text,
    ADD COLUMN ignore        text[]  NOT NULL DEFAULT '{}',
    ADD COLUMN max_requests  integer,
    ADD COLUMN max_new_pages integer,
    ADD COLUMN deleted_at    timestamptz,

    ADD CONSTRAINT apps_visitor_is_known        CHECK (visitor IN ('address', 'id', 'hashed', 'daily')),
    -- Visitors keyed with one secret are not those keyed with another: which one it is stays with the app.
    ADD CONSTRAINT apps_secret_keys_visitors    CHECK ((visitor = 'address') = (secret_id IS NULL)),
    ADD CONSTRAINT apps_secret_id_length        CHECK (octet_length(secret_id) = 8),
    ADD CONSTRAINT apps_bots_is_known           CHECK (bots IN ('count', 'skip')),
    ADD CONSTRAINT apps_ignore_no_nulls         CHECK (array_position(ignore, NULL) IS NULL),
    ADD CONSTRAINT apps_limits_are_not_negative CHECK (least(max_requests, max_new_pages) >= 0);

COMMENT ON COLUMN apps.visitor       IS 'What tells visitors apart: address, id (said by the caller), hashed (keyed hash of the address), daily (one that turns each day). Fixed once something is counted.';
COMMENT ON COLUMN apps.secret_id     IS 'Tells which secret keys the hashes of visitors, and nothing else of it. Null where addresses are stored.';
COMMENT ON COLUMN apps.respect_dnt   IS 'Visits whose browser asks not to be tracked (DNT, Sec-GPC) are not counted.';
COMMENT ON COLUMN apps.bots          IS 'count or skip crawlers. Null: skipped, where the visit is of the caller''s own address and access is not open.';
COMMENT ON COLUMN apps.ignore        IS 'Networks, and ids of visitors, whose visits are not counted.';
COMMENT ON COLUMN apps.max_requests  IS 'Requests a minute from one address (IPv6: /64). 0: any number. Null: as the service chooses.';
COMMENT ON COLUMN apps.max_new_pages IS 'New pages and sites a day; a visit to one more counts for the site''s page (other). 0: any number. Null: as the service chooses.';
COMMENT ON COLUMN apps.deleted_at    IS 'Since when its deletion has been under way; it counts nothing any more.';

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
COMMENT ON COLUMN keys.scopes     IS 'count: count visits. assert: the same, and say who came. read: ask about a visitor.';

-- Running instances keep keys in memory beside apps. Their use changes nothing there.
CREATE TRIGGER keys_changed
    AFTER INSERT OR DELETE OR TRUNCATE OR UPDATE OF app_id, hash, scopes, revoked_at ON keys
    FOR EACH STATEMENT EXECUTE FUNCTION apps_changed();

COMMENT ON COLUMN epochs.name IS 'apps: rows of apps or keys changed. erasures: rows of visitors or pages were removed, or became others''.';

-- The lock under which an app's pages are made, so that its limit holds whichever instances make them.
CREATE TABLE page_tallies (
    app_id integer PRIMARY KEY REFERENCES apps,
    day_id integer NOT NULL,
    today  bigint  NOT NULL,

    CONSTRAINT page_tallies_are_not_negative CHECK (today >= 0)
);

COMMENT ON TABLE  page_tallies        IS 'How many pages and sites each app got on its last day that brought any, for its limit.';
COMMENT ON COLUMN page_tallies.app_id IS 'The app.';
COMMENT ON COLUMN page_tallies.day_id IS 'The last day on which it got a page.';
COMMENT ON COLUMN page_tallies.today  IS 'Pages and sites made on that day, those deleted since included.';

-- Without it, each page that is deleted would be looked for as the site of every other.
CREATE INDEX pages_by_site ON pages (site_id);

-- Half of the key of an app whose visitors turn each day; the other half is the secret outside this database. When a day is
-- over its row goes, and with it the way from an address to that day's visitor.
CREATE TABLE day_keys (
    day_id integer PRIMARY KEY,
    key    bytea   NOT NULL,

    CONSTRAINT day_keys_length CHECK (octet_length(key) = 32)
);

COMMENT ON TABLE  day_keys        IS 'Random keys of the days now under way, for apps whose visitors are daily.';
COMMENT ON COLUMN day_keys.day_id IS 'The day, like 20190629.';
COMMENT ON COLUMN day_keys.key    IS 'Hashed with the address; worth nothing without the secret that is kept elsewhere.';

-- What is left of visitors who were erased, so that the sums stay and every rank is accounted for. Nothing links two rows.
CREATE TABLE erased_visitors (
    page_id bigint NOT NULL,
    rank    bigint NOT NULL,

    PRIMARY KEY (page_id, rank),
    CONSTRAINT erased_visitors_rank_from_one CHECK (rank >= 1)
);

COMMENT ON TABLE  erased_visitors         IS 'Visitors whose address was erased: uv of a target = its rows in visitors and here.';
COMMENT ON COLUMN erased_visitors.page_id IS 'The target.';
COMMENT ON COLUMN erased_visitors.rank    IS 'The rank that the visitor had. Nobody else gets it.';

CREATE TABLE erased_visits (
    page_id  bigint  NOT NULL,
    day_id   integer NOT NULL,
    visitors bigint  NOT NULL,

    PRIMARY KEY (page_id, day_id),
    CONSTRAINT erased_visits_are_some CHECK (visitors >= 1)
);

COMMENT ON TABLE  erased_visits          IS 'Days of visitors whose address was erased: pv of a target = its rows in visits and the sum here.';
COMMENT ON COLUMN erased_visits.page_id  IS 'The target.';
COMMENT ON COLUMN erased_visits.day_id   IS 'The day.';
COMMENT ON COLUMN erased_visits.visitors IS 'How many erased visitors came to the target on that day.';

-- +goose Down
-- Erased visitors stay counted in the sums, without a row: the version before has none for them.
DROP TABLE erased_visits;
DROP TABLE erased_visitors;
DROP TABLE day_keys;
DROP INDEX pages_by_site;
DROP TABLE page_tallies;
COMMENT ON COLUMN epochs.name IS 'apps: rows of apps changed. erasures: rows of visitors or pages were removed, or became others''.';
DROP TABLE keys;
ALTER TABLE apps
    DROP COLUMN visitor,
    DROP COLUMN secret_id,
    DROP COLUMN respect_dnt,
    DROP COLUMN bots,
    DROP COLUMN ignore,
    DROP COLUMN max_requests,
    DROP COLUMN max_new_pages,
    DROP COLUMN deleted_at;
