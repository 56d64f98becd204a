-- Who may do what in the database: a role for the service, which counts and no more, and one for those who read reports.

-- +goose Up
CREATE SCHEMA report;

COMMENT ON SCHEMA report IS 'What Footfall offers to read: views and functions, each with a comment.';

-- The roles belong to the whole server, their rights to this database. Whoever migrates may not be allowed to make roles, as on
-- managed servers: then somebody else makes them, and the next `footfall migrate up` grants them what is theirs. So the rights to
-- all tables stand in this one function, which that command calls each time; a migration that adds a table replaces it. It
-- takes nothing away: what an administrator grants besides stays.
-- +goose StatementBegin
CREATE FUNCTION grant_roles() RETURNS text[]
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

COMMENT ON FUNCTION grant_roles() IS 'Makes the roles footfall_app and footfall_report where it may, grants them what is theirs in this database, and returns those that are missing.';

-- A service that owns nothing makes and drops partitions through these two, which run as their owner. Their search_path is
-- fixed, with a session's temporary tables last in it, so that no name in them means anything of the caller's.
ALTER FUNCTION make_visits_day(integer) SECURITY DEFINER;

-- The partition is known by the day that it holds and not by its name, which anybody may give to a table of his own. The locks
-- keep everybody from counting while they are waited for: it gives up soon.
-- +goose StatementBegin
CREATE FUNCTION drop_visits_day(day integer) RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    partition regclass;
BEGIN
    PERFORM make_date(day / 10000, day / 100 % 100, day % 100); -- refuses what is no day
    PERFORM pg_advisory_xact_lock(hashtext('footfall.make_visits_day'));
    SELECT c.oid
    INTO partition
    FROM pg_inherits AS i
    JOIN pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'footfall.visits'::regclass
      AND pg_get_expr(c.relpartbound, c.oid) = format('FOR VALUES IN (%s)', day);
    IF partition IS NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('ALTER TABLE visits DETACH PARTITION %s', partition);
    EXECUTE format('DROP TABLE %s', partition);
    RETURN true;
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION drop_visits_day(integer) IS 'Drops the partition of visits for a day like 20190629, and the rows in it; false if there is none. Fails with SQLSTATE 55P03 where somebody is using it: try again.';

REVOKE ALL ON FUNCTION make_visits_day(integer), drop_visits_day(integer), grant_roles() FROM PUBLIC;

SELECT grant_roles();

-- +goose Down
-- The roles stay, for other databases of the server may use them. What they may do in this one goes.
-- +goose StatementBegin
DO $$
DECLARE
    role text;
BEGIN
    -- Not from whoever migrates, should he have one of the names: the tables are his.
    FOR role IN SELECT rolname FROM pg_roles WHERE rolname IN ('footfall_app', 'footfall_report') AND rolname <> current_user LOOP
        EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA footfall FROM %I', role);
        EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA footfall FROM %I', role);
        EXECUTE format('REVOKE ALL ON SCHEMA footfall FROM %I', role);
    END LOOP;
END
$$;
-- +goose StatementEnd
DROP FUNCTION grant_roles();
DROP FUNCTION drop_visits_day(integer);
ALTER FUNCTION make_visits_day(integer) SECURITY INVOKER;
GRANT EXECUTE ON FUNCTION make_visits_day(integer) TO PUBLIC;
DROP SCHEMA report; -- and with it what would have been granted in it
