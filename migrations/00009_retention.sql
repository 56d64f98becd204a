-- How long rows are kept, and who lets them go: the service, which may delete nothing itself, through functions that run as their owner.
-- Each looks for itself whether what it is asked to delete may go.

-- +goose Up
ALTER TABLE apps
    ADD COLUMN retain_days integer NOT NULL DEFAULT 35,
    ADD COLUMN forget_days integer NOT NULL DEFAULT 0,

    ADD CONSTRAINT apps_retain_days_range CHECK (retain_days BETWEEN 0 AND 36500),
    -- Who is forgotten has no visits left that would name him.
    ADD CONSTRAINT apps_forget_days_range CHECK (forget_days = 0 OR (retain_days > 0 AND forget_days BETWEEN retain_days AND 36500));

COMMENT ON COLUMN apps.retain_days IS 'For how many days rows of visits are kept. 0: for ever. The sums stay in any case.';
COMMENT ON COLUMN apps.forget_days IS 'Visitors who have not come to a site for so many days are forgotten there; if they come again they are new. 0: never.';

ALTER TABLE visits_kept ADD COLUMN gone_before integer NOT NULL DEFAULT 0;

COMMENT ON COLUMN visits_kept.gone_before IS 'No day before this one has rows of the app left, so that nobody needs to look there again.';

CREATE TABLE retentions (
    day_id   integer     PRIMARY KEY,
    ended_at timestamptz NOT NULL DEFAULT now()
);

COMMENT ON TABLE  retentions          IS 'On which days everything that need not be kept was let go, so that one instance does it and the others need not.';
COMMENT ON COLUMN retentions.day_id   IS 'The day, in the last time zone in which it begins (12 hours behind UTC).';
COMMENT ON COLUMN retentions.ended_at IS 'When it was done.';

-- A day begins there last of all, so that nobody's clock is behind it.
-- +goose StatementBegin
CREATE FUNCTION days_ago(n integer) RETURNS integer
LANGUAGE sql STABLE STRICT
AS $$
    SELECT to_char((now() AT TIME ZONE 'UTC' - interval '12 hours')::date - n, 'YYYYMMDD')::integer
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION days_ago(integer) IS 'The day so many days ago, like 20190629, in the last time zone in which a day begins.';

-- Nobody may move rows from page to page while they are summed up.
-- +goose StatementBegin
CREATE FUNCTION close_day_in_turn(day integer) RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
BEGIN
    PERFORM FROM epochs WHERE name = 'erasures' FOR UPDATE;
    RETURN close_day(day);
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION close_day_in_turn(integer) IS 'close_day() while nobody erases.';

-- +goose StatementBegin
CREATE FUNCTION remake_tops(app integer, site bigint) RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
BEGIN
    PERFORM FROM epochs WHERE name = 'erasures' FOR UPDATE;
    INSERT INTO tops (app_id, site_id, day_id, by, page_ids, numbers)
    SELECT app, site, day_id, by, array_agg(page_id ORDER BY place), array_agg(number ORDER BY place)
    FROM (
        SELECT d.day_id, d.page_id, n.by, n.number,
               row_number() OVER (PARTITION BY d.day_id, n.by ORDER BY n.number DESC, d.page_id) AS place
        FROM pages AS s
        JOIN days AS d ON d.site_id = s.id
        CROSS JOIN LATERAL (VALUES ('pv', d.pv), ('uv', d.uv), ('hot', d.hot)) AS n (by, number)
        WHERE s.app_id = app
          AND s.site_id IS NULL
          AND site IN (0, s.id)
          AND d.day_id IN (SELECT c.day_id FROM closed_days AS c)
          AND n.number > 0
    ) AS ordered
    WHERE place <= 1000
    GROUP BY day_id, by
    ON CONFLICT DO NOTHING;
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION remake_tops(integer, bigint) IS 'Makes the tops of a site, or of all of an app (0), for all closed days, where they are missing.';

-- The turn: who moves rows from page to page reads how far they are kept, and must be done before more may go.
-- +goose StatementBegin
CREATE FUNCTION keep_visits_from(app integer, day integer) RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
BEGIN
    PERFORM FROM epochs WHERE name = 'erasures' FOR UPDATE;
    IF NOT EXISTS (SELECT FROM apps AS a WHERE a.id = app AND a.retain_days > 0 AND day <= days_ago(a.retain_days)) THEN
        RAISE EXCEPTION 'app % keeps its visits of days before %', app, day USING ERRCODE = '22023';
    END IF;
    INSERT INTO visits_kept AS k (app_id, from_day)
    VALUES (app, day)
    ON CONFLICT (app_id) DO UPDATE
        SET from_day = greatest(k.from_day, excluded.from_day);
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION keep_visits_from(integer, integer) IS 'Lets the visits of an app of days before one go, if it need not keep them.';

-- What an app counted on a day is in the days of its sites, so that no row of visits has to be looked for.
-- +goose StatementBegin
CREATE FUNCTION drop_unkept_day(day integer) RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM closed_days AS c WHERE c.day_id = day) THEN
        RAISE EXCEPTION 'day % is not closed', day USING ERRCODE = '22023';
    END IF;
    IF day >= to_char(now() AT TIME ZONE 'UTC' - interval '1 day', 'YYYYMMDD')::integer THEN
        RAISE EXCEPTION 'day % may still be counted by a slow clock', day USING ERRCODE = '22023';
    END IF;
    IF EXISTS (
        SELECT
        FROM pages AS s
        JOIN days AS d             ON d.page_id = s.id AND d.day_id = day
        JOIN apps AS a             ON a.id = s.app_id AND a.deleted_at IS NULL
        LEFT JOIN visits_kept AS k ON k.app_id = a.id
        WHERE s.site_id IS NULL
          AND day >= coalesce(k.from_day, 0)
    ) THEN
        RAISE EXCEPTION 'an app keeps its visits of day %', day USING ERRCODE = '22023';
    END IF;
    RETURN drop_visits_day(day);
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION drop_unkept_day(integer) IS 'drop_visits_day(), if no app keeps the visits of that day.';

-- +goose StatementBegin
CREATE FUNCTION delete_unkept_visits(app integer, day integer, from_page bigint, n integer, OUT deleted bigint, OUT last_page bigint)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM closed_days AS c WHERE c.day_id = day)
       OR NOT EXISTS (SELECT FROM visits_kept AS k WHERE k.app_id = app AND day < k.from_day) THEN
        RAISE EXCEPTION 'app % keeps its visits of day %', app, day USING ERRCODE = '22023';
    END IF;
    WITH chosen AS MATERIALIZED (
        SELECT v.page_id, v.ip
        FROM pages AS p
        JOIN visits AS v ON v.page_id = p.id AND v.day_id = day
        WHERE p.app_id = app
          AND p.id >= from_page
        ORDER BY p.id
        LIMIT n
    ), gone AS (
        DELETE FROM visits AS v
        USING chosen AS s
        WHERE v.page_id = s.page_id
          AND v.day_id = day
          AND v.ip = s.ip
    )
    SELECT count(*), coalesce(max(s.page_id), from_page)
    INTO deleted, last_page
    FROM chosen AS s;
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION delete_unkept_visits(integer, integer, bigint, integer) IS 'Deletes up to n visits of an app on a day that it keeps no longer, by page from one on; how many, and the last page.';

-- A visitor goes from a site and all its pages at once, or uv of a page might exceed that of its site when he comes again. The pairs are
-- looked for beforehand, without a lock; who has come since has a later last day at the site. Counting needs the lock of the site first of
-- all, so nobody comes between this look and the deletion.
-- +goose StatementBegin
CREATE FUNCTION forget_visitors(app integer, before integer, page_ids bigint[], ips inet[]) RETURNS bigint
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
SET enable_seqscan = off -- it takes each visitor's row by the key, however few rows look cheaper to read at once: visits wait meanwhile
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    forgotten bigint;
BEGIN
    PERFORM FROM epochs WHERE name = 'erasures' FOR UPDATE;
    IF NOT EXISTS (SELECT FROM apps AS a WHERE a.id = app AND a.forget_days > 0 AND before <= days_ago(a.forget_days)) THEN
        RAISE EXCEPTION 'app % does not forget those who came before %', app, before USING ERRCODE = '22023';
    END IF;
    PERFORM
    FROM counters AS c
    WHERE c.page_id IN (SELECT coalesce(p.site_id, p.id) FROM pages AS p WHERE p.app_id = app AND p.id = ANY (page_ids))
    ORDER BY c.page_id
    FOR UPDATE;
    WITH asked AS MATERIALIZED (
        SELECT unnest(page_ids) AS page_id, unnest(ips) AS ip
    ), gone AS (
        DELETE FROM visitors AS v
        USING asked AS k, pages AS p
        WHERE v.page_id = k.page_id
          AND v.ip = k.ip
          AND v.last_day < before
          AND p.id = v.page_id
          AND p.app_id = app
          AND NOT EXISTS (SELECT FROM visitors AS s WHERE s.page_id = coalesce(p.site_id, p.id) AND s.ip = v.ip AND s.last_day >= before)
        RETURNING v.page_id, v.rank
    ), left_of_them AS (
        INSERT INTO erased_visitors (page_id, rank)
        SELECT g.page_id, g.rank
        FROM gone AS g
    )
    SELECT count(*)
    INTO forgotten
    FROM gone;
    RETURN forgotten;
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION forget_visitors(integer, integer, bigint[], inet[]) IS 'Forgets those of some (target, visitor) pairs of an app who have not come since a day, if it is long enough ago; how many.';

-- +goose StatementBegin
CREATE FUNCTION merge_sketches(from_page bigint, into_page bigint) RETURNS void
LANGUAGE sql
SET search_path = footfall, pg_temp
AS $$
    WITH gone AS (
        DELETE FROM sketches AS s
        WHERE s.page_id = from_page
        RETURNING s.day_id, s.entries
    ), members AS (
        SELECT g.day_id, unnest(g.entries) AS entry
        FROM gone AS g
        UNION ALL
        SELECT s.day_id, unnest(s.entries)
        FROM sketches AS s
        WHERE s.page_id = into_page
          AND s.day_id IN (SELECT g.day_id FROM gone AS g)
    ), highest AS (
        SELECT m.day_id, max(m.entry) AS entry
        FROM members AS m
        GROUP BY m.day_id, m.entry / 64
    )
    INSERT INTO sketches (page_id, day_id, entries)
    SELECT into_page, h.day_id, array_agg(h.entry ORDER BY h.entry)
    FROM highest AS h
    GROUP BY h.day_id
    ON CONFLICT (page_id, day_id) DO UPDATE
        SET entries = excluded.entries
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION merge_sketches(bigint, bigint) IS 'Moves the sketches of one target into those of another: of each register the higher value stays.';

REVOKE ALL ON FUNCTION close_day_in_turn(integer), remake_tops(integer, bigint), keep_visits_from(integer, integer), drop_unkept_day(integer),
    delete_unkept_visits(integer, integer, bigint, integer), forget_visitors(integer, integer, bigint[], inet[]), merge_sketches(bigint, bigint) FROM PUBLIC;

-- A service that was taken over must not drop days that an app keeps.
UPDATE rights
SET what = 'EXECUTE ON FUNCTION make_visits_day(integer)'
WHERE role = 'footfall_app'
  AND what = 'EXECUTE ON FUNCTION make_visits_day(integer), drop_visits_day(integer)';

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'footfall_app' AND rolname <> current_user) THEN
        REVOKE ALL ON FUNCTION drop_visits_day(integer) FROM footfall_app;
    END IF;
END
$$;
-- +goose StatementEnd

INSERT INTO rights (role, what) VALUES
    ('footfall_app', 'SELECT ON visits_kept, closed_days, tops, retentions'),
    ('footfall_app', 'INSERT ON retentions'),
    ('footfall_app', 'UPDATE (gone_before) ON visits_kept'),
    ('footfall_app', 'EXECUTE ON FUNCTION close_day_in_turn(integer), remake_tops(integer, bigint), keep_visits_from(integer, integer), drop_unkept_day(integer)'),
    ('footfall_app', 'EXECUTE ON FUNCTION delete_unkept_visits(integer, integer, bigint, integer), forget_visitors(integer, integer, bigint[], inet[])');

-- +goose Down
DELETE FROM rights
WHERE role = 'footfall_app'
  AND what IN (
    'SELECT ON visits_kept, closed_days, tops, retentions',
    'INSERT ON retentions',
    'UPDATE (gone_before) ON visits_kept',
    'EXECUTE ON FUNCTION close_day_in_turn(integer), remake_tops(integer, bigint), keep_visits_from(integer, integer), drop_unkept_day(integer)',
    'EXECUTE ON FUNCTION delete_unkept_visits(integer, integer, bigint, integer), forget_visitors(integer, integer, bigint[], inet[])');
UPDATE rights
SET what = 'EXECUTE ON FUNCTION make_visits_day(integer), drop_visits_day(integer)'
WHERE role = 'footfall_app'
  AND what = 'EXECUTE ON FUNCTION make_visits_day(integer)';
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'footfall_app' AND rolname <> current_user) THEN
        REVOKE ALL ON visits_kept, closed_days, tops FROM footfall_app;
        GRANT EXECUTE ON FUNCTION drop_visits_day(integer) TO footfall_app;
    END IF;
END
$$;
-- +goose StatementEnd
DROP FUNCTION merge_sketches(bigint, bigint);
DROP FUNCTION forget_visitors(integer, integer, bigint[], inet[]);
DROP FUNCTION delete_unkept_visits(integer, integer, bigint, integer);
DROP FUNCTION drop_unkept_day(integer);
DROP FUNCTION keep_visits_from(integer, integer);
DROP FUNCTION remake_tops(integer, bigint);
DROP FUNCTION close_day_in_turn(integer);
DROP FUNCTION days_ago(integer);
DROP TABLE retentions;
ALTER TABLE visits_kept DROP COLUMN gone_before;
ALTER TABLE apps
    DROP COLUMN retain_days,
    DROP COLUMN forget_days;
