-- Each change of apps starts a new epoch. An instance with apps in memory holds a shared advisory
-- lock on the epoch that it has read.
CREATE FUNCTION apps_epochs_held_before(epoch bigint) RETURNS bigint
LANGUAGE sql STABLE
SET search_path = footfall, pg_temp
AS $$
    SELECT count(*)
    FROM pg_locks
    WHERE locktype = 'advisory'
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND classid::bigint = hashtext('footfall.apps')::bigint & 4294967295 -- an oid is unsigned, but a hash is signed
      AND objid::bigint < epoch
      AND objsubid = 2 -- 2: a lock with two keys
$$;

COMMENT ON FUNCTION apps_epochs_held_before(bigint) IS 'Number of running instances that have not loaded the apps of this epoch yet.';
