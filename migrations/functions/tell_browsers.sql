-- Batches of 0.1.0 have a lower schema_version. They would count different browsers behind one address as one visitor, so the
-- constraint refuses them. Changing the constraint waits for running batches.
CREATE FUNCTION tell_browsers() RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
DECLARE
    batches regclass := table_of('batches');
BEGIN
    IF EXISTS (
        SELECT
        FROM pg_constraint AS c
        WHERE c.conrelid = batches
          AND c.conname LIKE 'batches_by_this_version%'
          AND pg_get_constraintdef(c.oid) ~ 'schema_version = 3'
    ) THEN
        RETURN;
    END IF;
    IF batches <> 'batches'::regclass THEN
        PERFORM cell.on_coordinator('ALTER TABLE cell.batches DROP CONSTRAINT batches_by_this_version;
            ALTER TABLE cell.batches ADD CONSTRAINT batches_by_this_version CHECK (schema_version = 3) NOT VALID;');
        RETURN;
    END IF;
    ALTER TABLE batches DROP CONSTRAINT batches_by_this_version;
    ALTER TABLE batches
        ADD CONSTRAINT batches_by_this_version CHECK (schema_version = 3) NOT VALID;
END
$$;

COMMENT ON FUNCTION tell_browsers() IS 'Makes the database refuse batches of 0.1.0, which cannot distinguish browsers behind one address.';

REVOKE ALL ON FUNCTION tell_browsers() FROM PUBLIC;
