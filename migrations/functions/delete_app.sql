-- An app, or what remains of an app after a move, is deleted in several transactions. The first deletes the app's rows in the
-- table people. The second deletes the rows in the largest tables, without locks that other transactions wait for. The last
-- deletes all other rows.

CREATE FUNCTION hold_new_pages(app integer) RETURNS void
LANGUAGE sql
AS $$
    INSERT INTO page_tallies AS t (app_id, day_id, today)
    VALUES (app, 0, 0)
    ON CONFLICT (app_id) DO UPDATE
        SET today = t.today
$$;

COMMENT ON FUNCTION hold_new_pages(integer) IS 'Prevents other transactions from creating pages and tags of an app until the end of the transaction.';

CREATE FUNCTION hold_queues(app integer) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM FROM positions AS p
    WHERE p.app_id = app
      AND p.content IS NULL
      AND p.source <> 'logs'
    ORDER BY p.source COLLATE "C", p.part COLLATE "C"
    FOR UPDATE;
END
$$;

COMMENT ON FUNCTION hold_queues(integer) IS 'Locks the positions of an app''s queues: waits for running batches of these queues, and makes later batches wait. Takes the locks in the same order as batches do.';

-- A batch may also delete refused messages of a part of a queue (refuse_messages). Without the locks of hold_queues(), this
-- transaction and a batch could deadlock.
CREATE FUNCTION delete_refused(app integer) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM hold_queues(app);
    DELETE FROM refused AS r WHERE r.app_id = app;
END
$$;

COMMENT ON FUNCTION delete_refused(integer) IS 'Deletes the refused messages of an app.';

-- Creates or locks the counters one target at a time, in the same order as all batches. Creating all missing counters first
-- and locking the others afterwards could deadlock. A batch could hold a counter with a low id that this transaction needs.
-- The same batch could wait for a counter with a high id that this transaction has created.
CREATE FUNCTION take_counters(app integer) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO counters AS c (page_id)
    SELECT p.id
    FROM pages AS p
    WHERE p.app_id = app
    ORDER BY p.id
    ON CONFLICT (page_id) DO UPDATE
        SET hot = c.hot;
END
$$;

COMMENT ON FUNCTION take_counters(integer) IS 'Locks the counters of all targets of an app. Creates missing ones, or waits for a batch that is creating them.';

-- Deletes twice, because an instance that does not know yet that the app is deleted may copy rows of the previous period
-- during the first deletion.
CREATE FUNCTION delete_app_people(app integer) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM lock_people(app);
    -- Twice: an instance that has not learned of the deletion yet may copy rows to the open period during the first statement.
    -- The second statement also sees these rows.
    DELETE FROM people AS p WHERE p.app_id = app;
    DELETE FROM people AS p WHERE p.app_id = app;
END
$$;

COMMENT ON FUNCTION delete_app_people(integer) IS 'Deletes an app''s rows in the table people.';

CREATE FUNCTION delete_app_rows(app integer) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM hold_app_days(app);
    DELETE FROM visit_ids AS v WHERE v.app_id = app;
    DELETE FROM visits AS v WHERE v.page_id IN (SELECT p.id FROM pages AS p WHERE p.app_id = app);
    DELETE FROM sketches AS s WHERE s.page_id IN (SELECT p.id FROM pages AS p WHERE p.app_id = app);
    DELETE FROM here AS h WHERE h.site_id IN (SELECT p.id FROM pages AS p WHERE p.app_id = app);
    DELETE FROM history_imports AS i WHERE i.app_id = app;
    DELETE FROM visitors AS v WHERE v.page_id IN (SELECT p.id FROM pages AS p WHERE p.app_id = app);
END
$$;

COMMENT ON FUNCTION delete_app_rows(integer) IS 'Deletes the rows of an app in the largest tables: visits and their ids, visitors, sketches, history. While the app''s counters are locked, no batch adds rows.';

-- The lock on the app keeps other transactions from creating pages, and the locks on the app's counters keep them from
-- counting. A visit that is being counted is either counted and then deleted, or does not find its page. Batches that create
-- pages take these locks in the same order.
CREATE FUNCTION delete_app_rest(app integer) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    rows_of name;
BEGIN
    PERFORM hold_app_days(app);
    PERFORM hold_new_pages(app);
    PERFORM FROM apps AS a WHERE a.id = app FOR UPDATE;
    PERFORM pg_advisory_xact_lock(hashtext('footfall.fold_tags'));
    PERFORM hold_queues(app);
    DELETE FROM logs AS l WHERE l.app_id = app;
    DELETE FROM positions AS p WHERE p.app_id = app; -- before take_counters(), because a batch that holds a position may wait for counters
    DELETE FROM refused AS r WHERE r.app_id = app;   -- no batch writes refused messages without a position
    PERFORM FROM log_hours AS h WHERE h.app_id = app ORDER BY h.hour FOR UPDATE; -- in the same order as `import forget`
    DELETE FROM log_hours AS h WHERE h.app_id = app;
    DELETE FROM read_logs AS r WHERE r.app_id = app;
    DELETE FROM counted_lines AS l WHERE l.app_id = app;
    PERFORM take_counters(app);
    PERFORM delete_app_rows(app);
    FOREACH rows_of IN ARRAY ARRAY['erased_visitors', 'erased_visits', 'days', 'open_returns', 'packed_returns', 'tag_days', 'counters'] LOOP
        EXECUTE format('DELETE FROM %I WHERE page_id IN (SELECT p.id FROM pages AS p WHERE p.app_id = $1)', rows_of) USING app;
    END LOOP;
    -- The table offsets comes before keys, so that triggers raise the epoch of offsets before the epoch of apps, as in
    -- transactions that change offsets.
    FOREACH rows_of IN ARRAY ARRAY['pages', 'offsets', 'tags', 'tops', 'visits_kept', 'retention_pauses', 'page_tallies', 'keys', 'shares',
                                   'webhooks', 'notes'] LOOP
        EXECUTE format('DELETE FROM %I WHERE app_id = $1', rows_of) USING app;
    END LOOP;
END
$$;

COMMENT ON FUNCTION delete_app_rest(integer) IS 'Deletes all rows of an app except its row in apps.';
