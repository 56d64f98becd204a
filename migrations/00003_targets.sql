-- What is counted: targets (pages, and the sites they belong to), and one narrow row of sums for
-- each.

-- +goose Up
-- A B-tree entry holds at most 2,704 bytes, and most of a uri repeats its neighbour's: the index is
-- on a hash. convert_to() is only STABLE, for it reads the database's encoding; a database has one
-- for life, and Footfall's is UTF-8, so the promise made here holds.
-- +goose StatementBegin
CREATE FUNCTION page_key(uri text) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT pg_catalog.sha256(pg_catalog.convert_to(uri, 'UTF8'))
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION page_key(text) IS 'The SHA-256 by which pages are found: WHERE app_id = 1 AND key = page_key(''example.com/home'').';

CREATE TABLE pages (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    site_id    bigint      REFERENCES pages,
    app_id     integer     NOT NULL REFERENCES apps,
    created_at timestamptz NOT NULL DEFAULT now(),
    uri        text        NOT NULL,
    key        bytea       NOT NULL GENERATED ALWAYS AS (page_key(uri)) STORED,

    CONSTRAINT pages_app_key_is_unique    UNIQUE (app_id, key),
    CONSTRAINT pages_uri_length           CHECK (octet_length(uri) BETWEEN 1 AND 2048),
    -- A site is a bare host or host:port; a page is a site and a path, which begins with a slash.
    CONSTRAINT pages_site_xor_path        CHECK ((site_id IS NULL) = (strpos(uri, '/') = 0))
);

COMMENT ON TABLE  pages            IS 'Targets: what is counted. A row is a page, or a site (site_id is null).';
COMMENT ON COLUMN pages.id         IS 'The target''s number in counters, visitors and visits.';
COMMENT ON COLUMN pages.site_id    IS 'The site of this page; null for a site.';
COMMENT ON COLUMN pages.app_id     IS 'The app that counts it. The same uri in two apps is two targets.';
COMMENT ON COLUMN pages.created_at IS 'When it was counted first.';
COMMENT ON COLUMN pages.uri        IS 'Canonical and without a scheme: example.com for a site, example.com/home for a page.';
COMMENT ON COLUMN pages.key        IS 'page_key(uri): what the unique index holds.';

-- Without it, each page that is deleted would be looked for as the site of every other.
CREATE INDEX pages_by_site ON pages (site_id);

-- The pages and the sites of an app in order of name: text_pattern_ops serves prefixes in every
-- locale. 200 characters tell nearly all apart, and keep a flood of long ones from filling the
-- disk; a query that names them is led here. In two parts, so that whoever looks for a key of an
-- app, which may be either, is not.
CREATE INDEX pages_by_uri ON pages (app_id, left(uri, 200) text_pattern_ops) WHERE site_id IS NOT NULL;
CREATE INDEX sites_by_uri ON pages (app_id, left(uri, 200) text_pattern_ops) WHERE site_id IS NULL;

-- For people who ask the views of the schema report for one target: they write its uri, not its
-- key. A hash of it is kept, however long it is.
CREATE INDEX pages_by_whole_uri ON pages USING hash (uri);

-- What has been counted by stays as it is, also where somebody types an UPDATE into psql. Whoever
-- is making the app's first page holds its row, shared: locking it waits for them, and the
-- statement after that sees their page.
-- +goose StatementBegin
CREATE FUNCTION apps_count_as_they_began() RETURNS trigger
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

COMMENT ON FUNCTION apps_count_as_they_began() IS 'Fails where an app that has pages would count by another time zone, visitor mode, secret or IPv6 prefix.';

CREATE TRIGGER apps_count_as_they_began
    AFTER UPDATE OF tz, visitor, secret_id, ipv6_prefix ON apps
    FOR EACH ROW
    WHEN ((OLD.tz, OLD.visitor, OLD.secret_id, OLD.ipv6_prefix) IS DISTINCT FROM (NEW.tz, NEW.visitor, NEW.secret_id, NEW.ipv6_prefix))
    EXECUTE FUNCTION apps_count_as_they_began();

-- The lock under which an app's pages and tags are made, so that its limits hold whichever instances
-- make them.
CREATE TABLE page_tallies (
    app_id     integer PRIMARY KEY REFERENCES apps,
    day_id     integer NOT NULL,
    today      bigint  NOT NULL,
    tags_today bigint  NOT NULL DEFAULT 0,

    CONSTRAINT page_tallies_are_not_negative CHECK (today >= 0 AND tags_today >= 0)
);

COMMENT ON TABLE  page_tallies            IS 'How many pages and sites each app got on its last day that brought any, and how many tags, for its limits.';
COMMENT ON COLUMN page_tallies.app_id     IS 'The app.';
COMMENT ON COLUMN page_tallies.day_id     IS 'The last day on which it got a page or a tag.';
COMMENT ON COLUMN page_tallies.today      IS 'Pages and sites made on that day, those deleted since included.';
COMMENT ON COLUMN page_tallies.tags_today IS 'Tags made on that day whose values anybody can make up.';

-- Every visit writes a row here, so that it is as narrow as it can be, and nothing that changes is
-- indexed: updates stay inside their block (HOT) and leave the index alone. Half of each block is
-- kept free for them.
--
-- It has no foreign key to pages: a batch updates a row twice in its transaction, and PostgreSQL
-- checks the key again with every second update, changed or not, which took a third of the time of
-- a batch. Ids come from pages, which nobody deletes from.
CREATE TABLE counters (
    page_id bigint PRIMARY KEY,
    hot     bigint NOT NULL DEFAULT 0,
    pv      bigint NOT NULL DEFAULT 0,
    uv      bigint NOT NULL DEFAULT 0,

    CONSTRAINT counters_hot_pv_uv_descend CHECK (hot >= pv AND pv >= uv AND uv >= 0)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

COMMENT ON TABLE  counters         IS 'The sums of each target. Its row is the lock and the rank sequence of the target: uv is the last rank given.';
COMMENT ON COLUMN counters.page_id IS 'The target.';
COMMENT ON COLUMN counters.hot     IS 'Visits.';
COMMENT ON COLUMN counters.pv      IS 'Visits that were the first of their visitor on their day = (visitor, day) pairs.';
COMMENT ON COLUMN counters.uv      IS 'Visits that were the first of their visitor ever = visitors.';

-- What was counted elsewhere, before Footfall or beside it. It is added where totals are shown, and
-- nowhere else: counters, days and ranks hold what was counted here, so that all of it can be
-- recomputed. A target has numbers here before its first visit, so they are kept by its uri.
CREATE TABLE offsets (
    app_id integer NOT NULL REFERENCES apps,
    hot    bigint  NOT NULL,
    pv     bigint  NOT NULL,
    uv     bigint  NOT NULL,
    uri    text    NOT NULL,
    key    bytea   NOT NULL GENERATED ALWAYS AS (page_key(uri)) STORED,

    PRIMARY KEY (app_id, key),
    CONSTRAINT offsets_hot_pv_uv_descend CHECK (hot >= pv AND pv >= uv AND uv >= 0),
    -- With what is counted the sum is still a number that every JSON parser reads exactly.
    CONSTRAINT offsets_hot_is_exact      CHECK (hot <= 1000000000000000),
    CONSTRAINT offsets_uri_length        CHECK (octet_length(uri) BETWEEN 1 AND 2048)
);

COMMENT ON TABLE  offsets        IS 'Numbers of targets from elsewhere, which are added to their totals of all time where these are shown: never to a day, and to no other table.';
COMMENT ON COLUMN offsets.app_id IS 'The app.';
COMMENT ON COLUMN offsets.hot    IS 'Visits.';
COMMENT ON COLUMN offsets.pv     IS 'Visitors of each day, added up.';
COMMENT ON COLUMN offsets.uv     IS 'Visitors; added to ranks as well.';
COMMENT ON COLUMN offsets.uri    IS 'The target, as in pages, which need not have it. Numbers of a site are its own, not the sum of its pages''.';
COMMENT ON COLUMN offsets.key    IS 'page_key(uri), as in pages.';

-- Running instances keep them in memory, beside apps. There may be very many, so that they are read
-- anew only where one of them has changed.
-- +goose StatementBegin
CREATE FUNCTION offsets_changed() RETURNS trigger
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    UPDATE epochs SET value = value + 1 WHERE name = 'offsets';
    UPDATE epochs SET value = value + 1 WHERE name = 'apps';
    PERFORM pg_notify('footfall_apps', '');
    RETURN NULL;
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION offsets_changed() IS 'Raises the epochs of offsets and of apps, and wakes the instances that listen on footfall_apps.';

CREATE TRIGGER offsets_changed
    AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON offsets
    FOR EACH STATEMENT EXECUTE FUNCTION offsets_changed();

-- Where it is told that a target has had a visitor with a round number. Like an offset it may be
-- there before the target's first visit.
CREATE TABLE webhooks (
    id      integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    app_id  integer     NOT NULL REFERENCES apps ON DELETE CASCADE,
    seen    bigint      NOT NULL,
    since   timestamptz NOT NULL DEFAULT now(),
    try_at  timestamptz NOT NULL DEFAULT now(),
    private boolean     NOT NULL,
    uri     text        NOT NULL,
    key     bytea       NOT NULL GENERATED ALWAYS AS (page_key(uri)) STORED,
    url     text        NOT NULL,
    waiting text[]      NOT NULL DEFAULT '{}',

    CONSTRAINT webhooks_uri_length           CHECK (octet_length(uri) BETWEEN 1 AND 2048),
    CONSTRAINT webhooks_url_is_one           CHECK (url ~* '^https?://' AND octet_length(url) <= 2048),
    CONSTRAINT webhooks_waiting_no_nulls     CHECK (array_position(waiting, NULL) IS NULL)
);

COMMENT ON TABLE  webhooks         IS 'Where it is told that a page or site has had visitor 1, 2, 5, 10, 20, 50 …';
COMMENT ON COLUMN webhooks.id      IS 'The webhook''s number. With the visitor''s it is the id of a call.';
COMMENT ON COLUMN webhooks.app_id  IS 'The app.';
COMMENT ON COLUMN webhooks.seen    IS 'Of the visitors that were counted here, offsets left out, so many were looked at: round numbers among theirs wait, or were told.';
COMMENT ON COLUMN webhooks.since   IS 'Since when the first of waiting waits, or is tried.';
COMMENT ON COLUMN webhooks.try_at  IS 'When that is tried next, unless it is taken meanwhile.';
COMMENT ON COLUMN webhooks.private IS 'Its receiver may have a private, loopback or link-local address.';
COMMENT ON COLUMN webhooks.uri     IS 'The target, as in pages, which need not have it.';
COMMENT ON COLUMN webhooks.key     IS 'page_key(uri), as in pages.';
COMMENT ON COLUMN webhooks.url     IS 'Where it is told.';
COMMENT ON COLUMN webhooks.waiting IS 'The bodies of calls that no receiver has taken yet, in their order.';

-- With another offset the same visitors have other numbers. So what was counted before is looked at
-- by the offsets by which it was shown.
-- +goose StatementBegin
CREATE FUNCTION offsets_will_change() RETURNS trigger
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    PERFORM see_round_numbers(true);
    RETURN NULL;
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION offsets_will_change() IS 'Looks for round numbers that were given before offsets change.';

CREATE TRIGGER offsets_will_change
    BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON offsets
    FOR EACH STATEMENT EXECUTE FUNCTION offsets_will_change();

-- +goose Down
DROP TRIGGER apps_count_as_they_began ON apps;
DROP FUNCTION apps_count_as_they_began();
DROP TABLE webhooks;
DROP TABLE offsets;
DROP FUNCTION offsets_will_change();
DROP FUNCTION offsets_changed();
DROP TABLE counters;
DROP TABLE page_tallies;
DROP TABLE pages;
DROP FUNCTION page_key(text);
