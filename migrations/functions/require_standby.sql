-- Called before and after a COMMIT that must wait for a standby. If synchronous_standby_names is emptied during the COMMIT,
-- PostgreSQL silently releases sessions that wait for a standby. The second call notices this, because PostgreSQL signals the
-- sessions to reload their settings before it releases them.
CREATE FUNCTION require_standby() RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = footfall, pg_temp
AS $$
DECLARE
    why text := CASE
        WHEN current_setting('synchronous_standby_names') = ''                   THEN 'synchronous_standby_names is empty'
        WHEN current_setting('max_wal_senders') = '0'                            THEN 'max_wal_senders is 0'
        WHEN current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN 'synchronous_commit is ' || current_setting('synchronous_commit')
    END;
BEGIN
    IF why IS NOT NULL THEN
        RAISE EXCEPTION '%', why
            USING ERRCODE = 'FF009', HINT = 'Name the standby in synchronous_standby_names, and let COMMIT wait for it.';
    END IF;
END
$$;

COMMENT ON FUNCTION require_standby() IS 'Fails with SQLSTATE FF009 if COMMIT does not wait for a synchronous standby.';

-- The service may call this function, too, because a cluster manager may start the service with --require-standby. Each batch
-- writes its row of batches, and then checks once whether a standby is required. The lock on batches waits for the batches
-- that have written their row. So every batch that commits later has found the requirement.
CREATE FUNCTION say_standby(required boolean) RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF required AND NOT EXISTS (SELECT FROM epochs AS e WHERE e.name = 'standby' AND e.value % 2 = 1) THEN
        EXECUTE format('LOCK TABLE ONLY %s IN SHARE MODE', table_of('batches'));
    END IF;
    UPDATE epochs AS e
    SET value = e.value + CASE WHEN e.value = 0 AND NOT required THEN 2 ELSE 1 END
    WHERE e.name = 'standby'
      AND (e.value = 0 OR (e.value % 2 = 1) <> required);
END
$$;

COMMENT ON FUNCTION say_standby(boolean) IS 'Sets whether COMMIT must wait for a synchronous standby, for all sessions that write here from now on.';

REVOKE ALL ON FUNCTION say_standby(boolean) FROM PUBLIC;
