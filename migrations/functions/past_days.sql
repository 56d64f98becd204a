-- A caller may specify the time of a visit, which may then be of any past day that the app keeps. Two advisory locks separate
-- a batch of such visits from transactions that close or drop past days, or erase their visits. The batch takes both locks
-- shared, before it locks counters. The other transactions take one of the locks exclusively, usually only for a moment.
--
-- One lock is for all days, because a batch may have hundreds of days. The transactions that take this lock exclusively (to
-- close or drop a day) run once a night. The other lock is for each app. It protects the kept days, the lists of top pages,
-- and visitors during an erasure.

-- An erasure or deletion may hold the lock of an app for a long time. A batch waits only 0.2 seconds, because other batches
-- have to wait behind it.
CREATE FUNCTION lock_app_days_shared(apps integer[]) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
SET lock_timeout = '200ms'
AS $$
DECLARE
    app integer;
BEGIN
    FOR app IN SELECT DISTINCT a.app_id FROM unnest(apps) AS a (app_id) ORDER BY a.app_id LOOP
        PERFORM pg_advisory_xact_lock_shared(hashtext('footfall.past_days'), app);
    END LOOP;
EXCEPTION
    WHEN lock_not_available THEN
        RAISE EXCEPTION 'days of app % are locked by another transaction', app
            USING ERRCODE = 'FF007', DETAIL = app, HINT = 'Send the batch without the visits of that app.';
END
$$;

COMMENT ON FUNCTION lock_app_days_shared(integer[]) IS 'Blocks erasures in some apps, and changes of their kept days, until the end of the transaction. Fails with SQLSTATE FF007, and the id of the app as the detail, if another transaction has locked an app.';

-- If late is false, the batch cannot count for closed days, so this function fails for closed days.
CREATE FUNCTION require_past_days(apps integer[], days integer[], late boolean) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtext('footfall.past_days'));
    PERFORM lock_app_days_shared(apps);
    IF EXISTS (SELECT FROM unnest(apps, days) AS t (app_id, day) JOIN visits_kept AS k ON k.app_id = t.app_id WHERE t.day < k.from_day) THEN
        RAISE EXCEPTION 'an app no longer keeps a day of the batch'
            USING ERRCODE = 'FF005', HINT = 'Send the batch without the visits of that day.';
    END IF;
    PERFORM require_day_near(max(t.day), 0) FROM unnest(days) AS t (day);
    IF NOT late AND EXISTS (SELECT FROM closed_days AS c WHERE c.day_id = ANY (days)) THEN
        RAISE EXCEPTION 'a day of the batch is closed'
            USING ERRCODE = 'FF006', HINT = 'Send the batch again as late visits.';
    END IF;
END
$$;

COMMENT ON FUNCTION require_past_days(integer[], integer[], boolean) IS 'Blocks changes of the past days of a batch, and of its apps, until the batch ends. Fails with SQLSTATE FF005 if an app no longer keeps a day, FF003 if a day has not started in any time zone, FF006 if it is closed and late is false, and FF007 if another transaction has locked an app. The values at one index of the arrays are an app and a day.';

CREATE FUNCTION hold_days() RETURNS void
LANGUAGE sql
AS $$
    SELECT pg_advisory_xact_lock(hashtext('footfall.past_days'))
$$;

COMMENT ON FUNCTION hold_days() IS 'Waits for all batches of visits of past days, and makes later ones wait until the end of the transaction.';

CREATE FUNCTION hold_app_days(app integer) RETURNS void
LANGUAGE sql
AS $$
    SELECT pg_advisory_xact_lock(hashtext('footfall.past_days'), app)
$$;

COMMENT ON FUNCTION hold_app_days(integer) IS 'Waits for the batches of past days of one app, and makes later ones wait until the end of the transaction.';

-- Whether an import of old visits of an app is running. Until the import ends, no rows of the app may be deleted for their
-- age.
CREATE FUNCTION is_retention_paused(app integer) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = footfall, pg_temp
AS $$
    SELECT EXISTS (SELECT FROM retention_pauses AS p WHERE p.app_id = app AND p.until > now())
$$;

COMMENT ON FUNCTION is_retention_paused(integer) IS 'Whether the deletion of visits and visitors for their age is paused for an app.';

CREATE FUNCTION require_retention(app integer) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF is_retention_paused(app) THEN
        RAISE EXCEPTION 'deleting and forgetting are paused for app %', app
            USING ERRCODE = '55P03', HINT = 'Try again after the running import has ended.';
    END IF;
END
$$;

COMMENT ON FUNCTION require_retention(integer) IS 'Fails with SQLSTATE 55P03 if the deletion of visits and visitors for their age is paused for an app.';

-- The first day for which visits are accepted. During a pause of retention, this day stays the same as at the start of the
-- pause. If pauses overlap, it stays the same as at the start of the first pause.
CREATE FUNCTION first_possible_day(app integer) RETURNS integer
LANGUAGE sql STABLE
SET search_path = footfall, pg_temp
AS $$
    SELECT greatest(k.from_day, p.from_day, CASE WHEN a.retain_days > 0 AND p.from_day IS NULL THEN days_ago(a.retain_days) ELSE 0 END)
    FROM apps AS a
    LEFT JOIN visits_kept AS k ON k.app_id = a.id
    CROSS JOIN (SELECT min(r.from_day) AS from_day FROM retention_pauses AS r WHERE r.app_id = app AND r.until > now()) AS p
    WHERE a.id = app
$$;

COMMENT ON FUNCTION first_possible_day(integer) IS 'The first day, like 20190629, for which an app still accepts visits. 0: any day.';

REVOKE ALL ON FUNCTION hold_days(), hold_app_days(integer), require_retention(integer) FROM PUBLIC;
