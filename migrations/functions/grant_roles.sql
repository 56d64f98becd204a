-- Rights of the roles in the database: footfall_app is the role of the service. footfall_report only reads reports.
--
-- The roles belong to the whole server, but their rights only to this database. On managed servers, the role that migrates may
-- not be allowed to create roles. Then an administrator creates them, and the next `footfall migrate up` grants their rights.
-- Nothing is revoked: additional rights from an administrator stay.
CREATE FUNCTION grant_roles() RETURNS text[]
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
DECLARE
    name    text;
    missing text[] := '{}';
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('footfall.grant_roles'));
    PERFORM set_config('citus.enable_ddl_propagation', 'off', true); -- other nodes of a cluster do not have these tables
    -- Keeps instances from attaching a partition at this moment, because that writes the same row of the catalog as a GRANT on
    -- visits.
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
                    -- A session in another database has created the role at this moment, which no lock of this database
                    -- prevents. The cache of this session does not contain the role yet. Trying again refreshes the cache, and
                    -- then fails with duplicate_object.
                    NULL;
            END;
        END LOOP;
    END LOOP;

    -- The rights that `footfall serve` needs, and no more. Partitions of visits are only used through visits.
    IF 'footfall_app' <> ALL (missing) THEN
        GRANT USAGE ON SCHEMA footfall TO footfall_app;
        GRANT SELECT ON schema_files, goose_db_version, apps, keys, admin_keys, shares, notes, day_keys, epochs, pages, page_tallies, counters, offsets, webhooks, totals, bases,
            visitors, visits, visit_ids, batches, positions, refused, logs, log_lines, log_samples, log_hours, counted_lines, read_logs, days, open_returns, packed_returns, closed_days, tops, visits_kept, retention_pauses, inbox, tags, tag_days, tag_news, people, here, changes, titles, history_imports, history_days, history TO footfall_app;
        GRANT INSERT ON inbox, day_keys, pages, page_tallies, counters, visitors, visits, visit_ids, batches, positions, logs, log_samples, log_hours, counted_lines, read_logs, days, open_returns, tags, tag_days, tag_news, people, here, changes TO footfall_app;
        GRANT DELETE ON tag_news, log_samples, here TO footfall_app;
        GRANT SELECT, INSERT, UPDATE, DELETE ON accounts, account_apps, account_sessions, account_links TO footfall_app;
        GRANT UPDATE (used_at)        ON keys           TO footfall_app;
        GRANT UPDATE (used_at)        ON admin_keys     TO footfall_app;
        GRANT UPDATE (day_id, today, tags_today, own_tags_today) ON page_tallies TO footfall_app;
        GRANT UPDATE (hot, pv, uv)    ON counters       TO footfall_app;
        GRANT UPDATE (seen, since, try_at, waiting, answers) ON webhooks TO footfall_app;
        GRANT UPDATE (hot, pv, new_visitors) ON days    TO footfall_app;
        GRANT UPDATE (pv, newcomers)  ON tag_days       TO footfall_app;
        GRANT UPDATE (last_day)       ON visitors       TO footfall_app;
        GRANT UPDATE (abandoned)      ON batches        TO footfall_app;
        GRANT UPDATE (next, uncounted, used_at) ON positions TO footfall_app;
        GRANT UPDATE (claimed, hash, counted, counted_hash, lines, beginning, look, server, file, inode, state, rules, told, after, after_lines, last_at, tail, used_at) ON logs TO footfall_app;
        GRANT UPDATE (sample)         ON log_samples    TO footfall_app;
        GRANT UPDATE (servers, versions, gone, latest) ON log_hours TO footfall_app;
        GRANT UPDATE (hashes)         ON counted_lines  TO footfall_app;
        GRANT UPDATE (run, state, place, sum, start, lines, read_at) ON read_logs TO footfall_app;
        GRANT UPDATE (visitors)       ON open_returns   TO footfall_app;
        GRANT UPDATE (gone_before)    ON visits_kept    TO footfall_app;
        GRANT UPDATE (height, person, tag_ids) ON people TO footfall_app;
        GRANT EXECUTE ON FUNCTION empty_batches(), forget_calls(integer, integer), refuse_messages(integer, text, text, bigint[], text[], text[]), forget_refused(integer), forget_visit_ids(integer, integer), forget_day_keys(integer), make_log_key(integer, bytea), take_old_log(integer, bigint), forget_log_lines(), end_import(integer, text), closed_logs(integer), make_visits_day(integer), nodes_away(), settle_nodes(), announce_visits_days(), drop_visits_day(integer), close_day(integer),
            pack_returns(bigint, integer), make_tops(integer, integer), keep_visits_from(integer, integer),
            delete_unkept_visits(integer, integer, bigint, integer),
            forget_visitors(integer, integer, bigint[], inet[]), note_retention(integer), pause_retention(integer, bigint, integer), read_anew(), turn_people(), lock_people(integer), take_from_inbox(bigint[], integer[], integer[]), say_standby(boolean), see_round_numbers(boolean), claim_app(text, text), let_go_app(text, text, interval), lead_app(text, text, text, timestamptz), put_titles(bigint[], text[], timestamptz),
            record_late_visits(bigint[], inet[], integer[], integer[], bigint[], bigint[], integer[], bigint[], bytea, text[]) TO footfall_app;
    END IF;

    -- The rights that `footfall report` needs, and no more: rights to the columns of apps that are needed to find targets and
    -- visitors, and to the tables that the views of the schema report do not cover.
    IF 'footfall_report' <> ALL (missing) THEN
        GRANT USAGE ON SCHEMA footfall TO footfall_report;
        GRANT SELECT ON schema_files, goose_db_version, pages, counters, totals, visitors, visits, days, visits_kept, titles TO footfall_report;
        GRANT SELECT (id, name, tz, ipv6_prefix, access, sites, keep_query, visitor, secret_id, hashed_as, cell) ON apps TO footfall_report;
    END IF;

    -- All present and future views and functions of the schema report. The service answers requests from the same views.
    -- filter_panels() returns the results of several report.*_where functions at once.
    FOREACH name IN ARRAY ARRAY['footfall_app', 'footfall_report'] LOOP
        CONTINUE WHEN name = ANY (missing);
        EXECUTE format('GRANT USAGE ON SCHEMA report TO %I', name);
        EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA report TO %I', name);
        EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA report TO %I', name);
        EXECUTE format('GRANT EXECUTE ON FUNCTION filter_panels TO %I', name);
        EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA report GRANT SELECT ON TABLES TO %I', name);
        EXECUTE format('ALTER DEFAULT PRIVILEGES IN SCHEMA report GRANT EXECUTE ON FUNCTIONS TO %I', name);
    END LOOP;
    RETURN missing;
END
$$;

COMMENT ON FUNCTION grant_roles() IS 'Creates the roles footfall_app and footfall_report if allowed, grants them their rights in this database, and returns the roles that are missing.';

REVOKE ALL ON FUNCTION grant_roles() FROM PUBLIC;
