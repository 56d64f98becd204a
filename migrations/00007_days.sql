-- What was counted day by day, kept by the write path itself: hot of a day could not be computed later, and the rest stays when
-- the rows of visits go.

-- +goose Up

-- Which rights the two roles have is data, so that a migration that adds a table adds rows and need not repeat the rest.
CREATE TABLE rights (
    role text NOT NULL,
    what text NOT NULL,

    PRIMARY KEY (role, what),
    CONSTRAINT rights_role_is_known CHECK (role IN ('footfall_app', 'footfall_report'))
);

COMMENT ON TABLE  rights      IS 'What grant_roles() grants.';
COMMENT ON COLUMN rights.role IS 'footfall_app: the service, which counts and no more. footfall_report: those who read reports.';
COMMENT ON COLUMN rights.what IS 'What stands between GRANT and TO.';

INSERT INTO rights (role, what) VALUES
    -- What `footfall serve` does, and no more. Partitions of visits are reached through visits alone.
    ('footfall_app', 'USAGE ON SCHEMA footfall'),
    ('footfall_app', 'SELECT ON apps, keys, epochs, pages, page_tallies, counters, visitors, visits, batches, day_keys, goose_db_version'),
    ('footfall_app', 'INSERT ON pages, page_tallies, counters, visitors, visits, batches, day_keys'),
    ('footfall_app', 'UPDATE (used_at)              ON keys'),
    ('footfall_app', 'UPDATE (day_id, today) ON page_tallies'),
    ('footfall_app', 'UPDATE (hot, pv, uv)          ON counters'),
    ('footfall_app', 'UPDATE (last_day)             ON visitors'),
    ('footfall_app', 'UPDATE (abandoned)            ON batches'),
    ('footfall_app', 'DELETE ON batches, day_keys'),
    ('footfall_app', 'EXECUTE ON FUNCTION make_visits_day(integer), drop_visits_day(integer)'),
    ('footfall_app', 'SELECT ON days, returns'),
    ('footfall_app', 'INSERT ON days, returns'),
    ('footfall_app', 'UPDATE (hot, pv, uv)          ON days'),
    ('footfall_app', 'UPDATE (visitors)             ON returns'),
    -- The service answers its callers' questions out of the same views.
    ('footfall_app', 'USAGE ON SCHEMA report'),
    ('footfall_app', 'SELECT ON ALL TABLES IN SCHEMA report'),
    ('footfall_app', 'EXECUTE ON ALL FUNCTIONS IN SCHEMA report'),
    ('footfall_report', 'USAGE ON SCHEMA report'),
    ('footfall_report', 'SELECT ON ALL TABLES IN SCHEMA report'),
    ('footfall_report', 'EXECUTE ON ALL FUNCTIONS IN SCHEMA report');

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION grant_roles() RETURNS text[]
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
DECLARE
    name    text;
    what    text;
    missing text[] := '{}';
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('footfall.grant_roles'));
    -- An instance that attaches a partition at this moment writes the same row of the catalog as a GRANT on visits.
    LOCK TABLE ONLY visits IN SHARE UPDATE EXCLUSIVE MODE;
    FOREACH name IN ARRAY ARRAY['footfall_app', 'footfall_report'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = name);
        LOOP
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', name);
                EXIT;
            EXCEPTION
                WHEN insufficient_privilege THEN
                    missing := missing || name;
                    EXIT;
                WHEN duplicate_object THEN
                    EXIT;
                WHEN unique_violation THEN
                    -- Made at this moment from another database, which no lock of this one keeps from it. What this session has
                    -- cached still says that there is no such role. Trying again brings it up to date: then it is duplicate_object.
                    NULL;
            END;
        END LOOP;
    END LOOP;

    FOR name, what IN SELECT r.role, r.what FROM rights AS r WHERE r.role <> ALL (missing) ORDER BY r.role, r.what LOOP
        EXECUTE format('GRANT %s TO %I', what, name);
    END LOOP;
    -- And all that will be in the schema.
    FOREACH name IN ARRAY ARRAY['footfall_app', 'footfall_report'] LOOP
        CONTINUE WHEN name = ANY (missing);
        EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA report GRANT SELECT ON TABLES TO %I', name);
        EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA report GRANT EXECUTE ON FUNCTIONS TO %I', name);
    END LOOP;
    RETURN missing;
END
$$;
-- +goose StatementEnd

-- From here on a batch that leaves the days out would break their promises, so that instances of before must not write one. They do not
-- know this column; it keeps them out, and those that are writing now are waited for.
ALTER TABLE batches ADD COLUMN schema_version smallint NOT NULL DEFAULT 7;
ALTER TABLE batches ALTER COLUMN schema_version DROP DEFAULT;
ALTER TABLE batches ADD CONSTRAINT batches_by_this_version CHECK (schema_version = 7);

COMMENT ON COLUMN batches.schema_version IS 'The migration whose write path wrote it: an instance that knows an older one only cannot write.';

-- A row is written by every batch that counts for its target, as that of counters is, and under its lock. Nothing that changes is indexed.
CREATE TABLE days (
    page_id bigint  NOT NULL,
    site_id bigint,
    day_id  integer NOT NULL,
    hot     bigint  NOT NULL,
    pv      bigint  NOT NULL,
    uv      bigint  NOT NULL,

    PRIMARY KEY (page_id, day_id),
    CONSTRAINT days_hot_pv_uv_descend CHECK (hot >= pv AND pv >= uv AND uv >= 0)
) WITH (fillfactor = 70);

-- The pages of a site on a day.
CREATE INDEX days_by_site ON days (site_id, day_id) WHERE site_id IS NOT NULL;

COMMENT ON TABLE  days         IS 'The sums of each target on each day; over all days they are those in counters.';
COMMENT ON COLUMN days.page_id IS 'The target.';
COMMENT ON COLUMN days.site_id IS 'The site of this page; null for a site.';
COMMENT ON COLUMN days.day_id  IS 'The day, like 20190629. 0: what was counted before daily numbers were kept and cannot be told by days.';
COMMENT ON COLUMN days.hot     IS 'Visits.';
COMMENT ON COLUMN days.pv      IS 'Visitors of the day.';
COMMENT ON COLUMN days.uv      IS 'New visitors. In sums of deleted pages it stays 0, for nobody can tell any more.';

-- A visitor is counted in a range of days once: on the first of his days there, which is the one whose previous day lies before the
-- range. So uniques from one day to another = new visitors in it, and those who returned in it from before it.
CREATE TABLE returns (
    page_id      bigint  NOT NULL,
    day_id       integer NOT NULL,
    previous_day integer NOT NULL,
    visitors     bigint  NOT NULL,

    PRIMARY KEY (page_id, day_id, previous_day),
    CONSTRAINT returns_are_some          CHECK (visitors >= 1),
    CONSTRAINT returns_from_an_earlier_day CHECK (previous_day < day_id)
) WITH (fillfactor = 80);

COMMENT ON TABLE  returns              IS 'How many visitors of a target came on a day, and before that last on a previous day: what makes uniques of any range exact.';
COMMENT ON COLUMN returns.page_id      IS 'The target.';
COMMENT ON COLUMN returns.day_id       IS 'The day.';
COMMENT ON COLUMN returns.previous_day IS 'The last day before it on which these visitors came.';
COMMENT ON COLUMN returns.visitors     IS 'How many there were.';

INSERT INTO days (page_id, site_id, day_id, hot, pv, uv)
SELECT d.page_id, p.site_id, d.day_id, sum(d.pv), sum(d.pv), sum(d.uv)
FROM (
    SELECT v.page_id, v.day_id, count(*) AS pv, count(*) FILTER (WHERE w.first_day = v.day_id) AS uv
    FROM visits AS v
    LEFT JOIN visitors AS w ON w.page_id = v.page_id AND w.ip = v.ip
    GROUP BY v.page_id, v.day_id
    UNION ALL
    SELECT e.page_id, e.day_id, e.visitors, 0
    FROM erased_visits AS e
) AS d
JOIN pages AS p ON p.id = d.page_id
GROUP BY d.page_id, p.site_id, d.day_id;

INSERT INTO returns (page_id, day_id, previous_day, visitors)
SELECT v.page_id, v.day_id, v.previous_day, count(*)
FROM (
    SELECT page_id, day_id, lag(day_id) OVER (PARTITION BY page_id, ip ORDER BY day_id) AS previous_day
    FROM visits
) AS v
WHERE v.previous_day IS NOT NULL
GROUP BY v.page_id, v.day_id, v.previous_day;

-- What no row tells the day of: the visits beyond the first of a visitor and day, and days whose rows somebody dropped.
INSERT INTO days (page_id, site_id, day_id, hot, pv, uv)
SELECT c.page_id, p.site_id, 0,
       c.hot - coalesce(d.pv, 0),
       c.pv - coalesce(d.pv, 0),
       least(c.uv - coalesce(d.uv, 0), c.pv - coalesce(d.pv, 0))
FROM counters AS c
JOIN pages AS p ON p.id = c.page_id
LEFT JOIN (SELECT page_id, sum(pv) AS pv, sum(uv) AS uv FROM days GROUP BY page_id) AS d ON d.page_id = c.page_id
WHERE c.hot > coalesce(d.pv, 0);

-- +goose Down
DROP TABLE returns;
DROP TABLE days;
ALTER TABLE batches DROP COLUMN schema_version;
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'footfall_app' AND rolname <> current_user) THEN
        ALTER DEFAULT PRIVILEGES IN SCHEMA report REVOKE SELECT ON TABLES FROM footfall_app;
        ALTER DEFAULT PRIVILEGES IN SCHEMA report REVOKE EXECUTE ON FUNCTIONS FROM footfall_app;
        REVOKE ALL ON SCHEMA report FROM footfall_app;
    END IF;
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION grant_roles() RETURNS text[]
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
DECLARE
    role    text;
    missing text[] := '{}';
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('footfall.grant_roles'));
    -- An instance that attaches a partition at this moment writes the same row of the catalog as a GRANT on visits.
    LOCK TABLE ONLY visits IN SHARE UPDATE EXCLUSIVE MODE;
    FOREACH role IN ARRAY ARRAY['footfall_app', 'footfall_report'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = role);
        LOOP
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role);
                EXIT;
            EXCEPTION
                WHEN insufficient_privilege THEN
                    missing := missing || role;
                    EXIT;
                WHEN duplicate_object THEN
                    EXIT;
                WHEN unique_violation THEN
                    -- Made at this moment from another database, which no lock of this one keeps from it. What this session has
                    -- cached still says that there is no such role. Trying again brings it up to date: then it is duplicate_object.
                    NULL;
            END;
        END LOOP;
    END LOOP;

    -- What `footfall serve` does, and no more. Partitions of visits are reached through visits alone.
    IF 'footfall_app' <> ALL (missing) THEN
        GRANT USAGE ON SCHEMA footfall TO footfall_app;
        GRANT SELECT ON apps, keys, epochs, pages, page_tallies, counters, visitors, visits, batches, day_keys, goose_db_version TO footfall_app;
        GRANT INSERT ON pages, page_tallies, counters, visitors, visits, batches, day_keys TO footfall_app;
        GRANT UPDATE (used_at)              ON keys         TO footfall_app;
        GRANT UPDATE (day_id, today) ON page_tallies TO footfall_app;
        GRANT UPDATE (hot, pv, uv)          ON counters     TO footfall_app;
        GRANT UPDATE (last_day)             ON visitors     TO footfall_app;
        GRANT UPDATE (abandoned)            ON batches      TO footfall_app;
        GRANT DELETE ON batches, day_keys TO footfall_app;
        GRANT EXECUTE ON FUNCTION make_visits_day(integer), drop_visits_day(integer) TO footfall_app;
    END IF;

    -- All that is in the schema, and all that will be.
    IF 'footfall_report' <> ALL (missing) THEN
        GRANT USAGE ON SCHEMA report TO footfall_report;
        GRANT SELECT ON ALL TABLES IN SCHEMA report TO footfall_report;
        GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA report TO footfall_report;
        ALTER DEFAULT PRIVILEGES IN SCHEMA report GRANT SELECT ON TABLES TO footfall_report;
        ALTER DEFAULT PRIVILEGES IN SCHEMA report GRANT EXECUTE ON FUNCTIONS TO footfall_report;
    END IF;
    RETURN missing;
END
$$;
-- +goose StatementEnd
DROP TABLE rights;
