-- For a COMMIT that must wait for a standby: before it, and once more behind it. Where the setting is
-- emptied meanwhile, PostgreSQL lets those go that wait, without a word. It has signalled the
-- sessions to read their settings anew by then.
CREATE FUNCTION require_standby() RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF current_setting('synchronous_standby_names') = '' THEN
        RAISE EXCEPTION 'synchronous_standby_names is empty'
            USING ERRCODE = 'FF009', HINT = 'Name the standby there.';
    END IF;
END
$$;

COMMENT ON FUNCTION require_standby() IS 'Fails with SQLSTATE FF009 where COMMIT waits for no synchronous standby.';
