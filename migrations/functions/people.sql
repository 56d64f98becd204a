-- Length of a period of people. An id is kept for at least this long after each use, and for at most twice as long.
CREATE FUNCTION people_period_length() RETURNS interval
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = footfall, pg_temp
RETURN interval '35 days';

COMMENT ON FUNCTION people_period_length() IS 'Minimum time for which an id of a person is kept after each use.';

-- The current period by the clock. After its start, turn_people() makes it the open period. Instances write ids in use to the
-- table of the open period.
CREATE FUNCTION people_clock() RETURNS bigint
LANGUAGE sql STABLE
SET search_path = footfall, pg_temp
RETURN floor(extract(epoch FROM statement_timestamp()) / extract(epoch FROM people_period_length()))::bigint;

COMMENT ON FUNCTION people_clock() IS 'Number of the current period of 35 days, counted since 1970.';

CREATE FUNCTION people_period() RETURNS smallint
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
BEGIN
    RETURN (SELECT e.value % 2 FROM epochs AS e WHERE e.name = 'people');
END
$$;

COMMENT ON FUNCTION people_period() IS 'The partition of people to which instances write: 0 or 1.';

-- Starts a new period if the open period has ended. Empties the table of the period before the last one, because the new period
-- uses this table. Waits for each lock only for a moment, because all look-ups have to wait behind it.
CREATE FUNCTION turn_people() RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    present bigint := people_clock();
    open    bigint;
BEGIN
    SELECT value INTO open FROM epochs WHERE name = 'people';
    IF present <= open THEN
        RETURN false;
    END IF;
    LOCK TABLE people IN ACCESS EXCLUSIVE MODE; -- so that no session is writing, or relies on the open period that it has read
    UPDATE epochs SET value = present WHERE name = 'people' AND value = open;
    IF NOT FOUND THEN
        RETURN false; -- another session has started the new period
    END IF;
    EXECUTE format('TRUNCATE %s', table_of('people_' || present % 2));
    IF present - open > 1 THEN -- the other table is outdated, too
        EXECUTE format('TRUNCATE %s', table_of('people_' || (present + 1) % 2));
    END IF;
    RETURN true;
EXCEPTION
    WHEN lock_not_available THEN
        RETURN false;
END
$$;

COMMENT ON FUNCTION turn_people() IS 'Starts a new period of people if the open one has ended, and empties the table of the period before the last one. Returns whether it started one.';

REVOKE ALL ON FUNCTION turn_people() FROM PUBLIC;

-- Must be called before people of an app are written or erased. Only one transaction at a time may write people of an app,
-- because two concurrent links could form a circle. This function reads people, and the lock of this query keeps turn_people()
-- from starting a new period until the transaction ends.
--
-- If the app has no people yet, the epoch of erasures is raised. From then on, instances have to look up the persons of the
-- app's visitors. The check runs under the lock, because another transaction may erase the last people while this one waits for
-- the lock. A transaction that has locked the row of this epoch must not call this function. It could deadlock with a
-- transaction that holds the lock and raises the epoch.
--
-- Before an app gets its first people, this function also waits for transactions that change the app: once an app has people,
-- it must identify visitors by id.
CREATE FUNCTION lock_people(app integer) RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('footfall.people'), app);
    -- The query is ordered by the key, because otherwise all rows might be read. EXISTS would ignore the order.
    IF (SELECT true FROM people WHERE period IN (0, 1) AND app_id = app ORDER BY period, app_id, id LIMIT 1) IS NULL THEN
        UPDATE epochs SET value = value + 1 WHERE name = 'erasures';
        PERFORM FROM apps AS a WHERE a.id = app FOR KEY SHARE;
    END IF;
END
$$;

COMMENT ON FUNCTION lock_people(integer) IS 'Lets only one transaction at a time write or erase people of an app.';

REVOKE ALL ON FUNCTION lock_people(integer) FROM PUBLIC;

-- The chains of links from some ids to persons, with a row for each step. hop 0 is the row of the id itself. An id without a
-- row in people has no rows here. The values at one index of the arrays are an app and an id, and place is this index, from 1.
-- The row of the open period takes precedence. The row of the other period is looked up only if the open period has no row.
CREATE FUNCTION find_people(app_ids integer[], asked inet[])
RETURNS TABLE (place integer, hop integer, id inet, person inet, height smallint, tag_ids integer[], closed boolean)
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
SET plan_cache_mode = force_generic_plan -- planning takes longer than looking an id up
AS $$
DECLARE
    open  smallint := people_period();
    other smallint := 1 - open;
BEGIN
    RETURN QUERY
    WITH RECURSIVE way AS (
        SELECT a.place::integer, -1 AS hop, a.app_id, NULL::inet AS id, a.id AS person,
               NULL::smallint AS height, NULL::integer[] AS tag_ids, NULL::boolean AS closed
        FROM unnest(app_ids, asked) WITH ORDINALITY AS a (app_id, id, place)
        UNION ALL
        SELECT w.place, w.hop + 1, w.app_id, f.id, f.person, f.height, f.tag_ids, f.closed
        FROM way AS w
        CROSS JOIN LATERAL (
            SELECT p.id, p.person, p.height, p.tag_ids, false AS closed
            FROM people AS p
            WHERE p.period = open AND p.app_id = w.app_id AND p.id = w.person
            UNION ALL
            SELECT p.id, p.person, p.height, p.tag_ids, true
            FROM people AS p
            WHERE p.period = other AND p.app_id = w.app_id AND p.id = w.person
            LIMIT 1
        ) AS f
        WHERE w.hop < 4
    )
    SELECT w.place, w.hop, w.id, w.person, w.height, w.tag_ids, w.closed
    FROM way AS w
    WHERE w.hop >= 0;
END
$$;

COMMENT ON FUNCTION find_people(integer[], inet[]) IS 'The rows of people that lead from some ids to persons. place: the index of the id in the arrays; hop: the number of steps from the id.';
