-- The number of visitors who visited at least one of several targets in a range of days. For one target, the number is exact,
-- from the sums of the target. For several targets, or for a page (deleted), the number is computed from the rows of visits if
-- all are kept. Otherwise it is estimated from the sketches of closed days and the rows of the other days.
--
-- No snapshot can read a dropped partition. So visits is locked first, which keeps days from being dropped. A later statement
-- then reads the rows, and also whether the rows are complete, in the same snapshot. (The function is volatile, so that each
-- statement has its own snapshot.) If the transaction has one snapshot for all statements, however, a day may have been
-- dropped since that snapshot was taken. The snapshot still has this partition in the catalog (see last_dropped_day()).
--
-- For several targets, most is the maximum number of rows that are read, so that this takes only some seconds. Larger requests
-- are refused. A single target has no such limit, because a list of pages may include a page (deleted). Uniques cannot be
-- computed if addresses were hashed in the range and rows are missing. Then they are null if or_null is true, and otherwise
-- the request is refused.
CREATE FUNCTION group_uniques(app integer, pages bigint[], from_day integer, to_day integer, most integer DEFAULT 1000000, or_null boolean DEFAULT false)
RETURNS TABLE (uniques bigint, exact boolean, standard_error double precision, erased bigint)
LANGUAGE plpgsql VOLATILE
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    all_kept  boolean;
    open_days integer[];
    dropped   integer; -- the last day that was dropped since the snapshot was taken
    read      bigint;  -- number of read visits, or of read entries of sketches
BEGIN
    IF cardinality(pages) = 1 THEN
        SELECT s.uniques, true, 0, 0
        INTO uniques, exact, standard_error, erased
        FROM targets_sums(pages, from_day, to_day) AS s;
        IF uniques IS NOT NULL THEN
            RETURN NEXT;
            RETURN;
        END IF;
        most := 1000000000;
    ELSIF cardinality(pages) > 100000 THEN
        RAISE EXCEPTION 'these are more than 100,000 pages: choose fewer, or a whole site' USING ERRCODE = '54000';
    END IF;

    PERFORM FROM visits WHERE false; -- locks only the parent table, and reads no partition
    dropped := last_dropped_day();
    -- Erased visitors cannot be distinguished: each day of an erased visitor may belong to a different visitor.
    SELECT k.all_kept,
           (SELECT coalesce(sum(e.visitors), 0)
            FROM erased_visits AS e
            WHERE e.page_id = ANY (pages)
              AND e.day_id BETWEEN from_day AND to_day),
           c.uniques, c.visits
    INTO all_kept, erased, uniques, read
    FROM (SELECT from_day > dropped
                 AND from_day >= coalesce((SELECT o.from_day FROM visits_kept AS o WHERE o.app_id = app), 0) AS all_kept) AS k
    CROSS JOIN LATERAL (
        SELECT count(*) AS uniques, coalesce(sum(o.visits), 0) AS visits
        FROM (
            SELECT r.ip, count(*) AS visits
            FROM (
                SELECT v.ip
                FROM visits AS v
                WHERE k.all_kept
                  AND v.page_id = ANY (pages)
                  AND v.day_id BETWEEN from_day AND to_day
                LIMIT most + 1
            ) AS r
            GROUP BY r.ip
        ) AS o
    ) AS c;
    IF NOT all_kept AND EXISTS (SELECT FROM apps AS a WHERE a.id = app AND from_day < a.hashed_from AND to_day >= a.hashed_from) THEN
        IF or_null THEN
            uniques := NULL;
            exact := true;
            RETURN NEXT;
            RETURN;
        END IF;
        RAISE EXCEPTION 'visitors were counted by address before day %, and by hash since then, so visitors of both times cannot be matched: choose days on one side, or a whole site',
            (SELECT a.hashed_from FROM apps AS a WHERE a.id = app) USING ERRCODE = '22023';
    END IF;
    exact := all_kept AND erased = 0;
    standard_error := 0;
    IF NOT all_kept THEN
        open_days := ARRAY(
            SELECT DISTINCT d.day_id
            FROM days AS d
            WHERE d.page_id IN (SELECT coalesce(p.site_id, p.id) FROM pages AS p WHERE p.id = ANY (group_uniques.pages))
              AND d.day_id BETWEEN from_day AND to_day
              AND NOT EXISTS (SELECT FROM closed_days AS c WHERE c.day_id = d.day_id)
            ORDER BY d.day_id
        );
        IF open_days[1] <= dropped THEN
            RAISE EXCEPTION 'visits of day % were dropped after the snapshot of this transaction was taken: begin a new one', open_days[1]
                USING ERRCODE = '40001';
        END IF;
        WITH open AS MATERIALIZED (
            SELECT sha256(inet_send(v.ip)) AS hash
            FROM visits AS v
            WHERE v.page_id = ANY (pages)
              AND v.day_id = ANY (open_days)
              AND v.day_id >= open_days[1] -- so that earlier partitions are not opened
        ), entries AS (
            SELECT unnest(s.entries) AS entry
            FROM sketches AS s
            WHERE s.page_id = ANY (pages)
              AND s.day_id BETWEEN from_day AND to_day
            UNION ALL
            SELECT sketch_entry(o.hash)
            FROM open AS o
        ), highest AS (
            SELECT max(e.entry) % 64 AS value, count(*) AS entries
            FROM (SELECT a.entry FROM entries AS a LIMIT most + 1) AS e
            GROUP BY e.entry / 64
        )
        SELECT round(sketch_estimate(count(*), coalesce(sum(power(2::double precision, -h.value)), 0))), coalesce(sum(h.entries), 0)
        INTO uniques, read
        FROM highest AS h;
        standard_error := 0.01625;
    END IF;
    IF read > most THEN
        RAISE EXCEPTION 'these pages have more than % visits in this range: choose fewer days, fewer pages, or a whole site', most USING ERRCODE = '54000';
    END IF;
    RETURN NEXT;
END
$$;

COMMENT ON FUNCTION group_uniques(integer, bigint[], integer, integer, integer, boolean) IS 'Number of visitors of any of some targets in a range of days, and its accuracy. Fails with SQLSTATE 54000 for more than 100,000 targets, and if several have more visits, or entries of sketches, than the limit; with 40001 if the snapshot is older than a dropped day; and if addresses were hashed in the range, unless or_null asks for null.';

-- Uniques are exact, even if rows were deleted: see the view returns. A page (deleted) does not have the previous days of its
-- visitors. So it has no new visitors, not even on its first day, and its uniques are null.
--
-- Only necessary rows are read. If the range contains all days of a target, its counters are read. If the target had no visit
-- before the range, no visitor can have returned from before the range. Any other range is replaced by one that starts on the
-- first counted day in it. The result is the same, and this day is a valid date even if the caller's number is not.
--
-- Rows of all targets are read together. In the table, the rows of a day are adjacent, and the rows of a target are not.
CREATE FUNCTION targets_sums(targets bigint[], from_day integer, to_day integer)
RETURNS TABLE (page_id bigint, pv bigint, new_visitors bigint, hot bigint, uniques bigint)
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
SET enable_sort = off -- there are few groups, although the planner expects many from an unknown array
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH known AS MATERIALIZED (
        SELECT t.page_id, f.day_id AS first_day, f.knows_new, c.pv, c.uv, c.hot
        FROM unnest(targets) AS t (page_id)
        LEFT JOIN LATERAL (
            SELECT d.day_id, d.new_visitors > 0 AS knows_new
            FROM days AS d
            WHERE d.page_id = t.page_id
            ORDER BY d.day_id
            LIMIT 1
        ) AS f ON true
        LEFT JOIN LATERAL (
            SELECT d.day_id
            FROM days AS d
            WHERE d.page_id = t.page_id
            ORDER BY d.day_id DESC
            LIMIT 1
        ) AS l ON true
        LEFT JOIN counters AS c
            ON c.page_id = t.page_id
           AND f.knows_new
           AND f.day_id >= from_day
           AND l.day_id <= to_day
    ), summed AS MATERIALIZED (
        SELECT d.page_id, sum(d.pv)::bigint AS pv, sum(d.new_visitors)::bigint AS new_visitors, sum(d.hot)::bigint AS hot, min(d.day_id) AS first_day
        FROM days AS d
        WHERE d.page_id = ANY (ARRAY(SELECT k.page_id FROM known AS k WHERE k.pv IS NULL))
          AND d.day_id BETWEEN from_day AND to_day
        GROUP BY d.page_id
    ), begins AS MATERIALIZED (
        SELECT min(s.first_day) AS day_id, day_date(min(s.first_day)) AS date
        FROM summed AS s
    ), old AS MATERIALIZED (
        SELECT coalesce(array_agg(s.page_id), '{}') AS targets
        FROM summed AS s
        JOIN known AS k ON k.page_id = s.page_id
        WHERE k.first_day < from_day
    ), returned AS MATERIALIZED (
        SELECT r.page_id, sum(r.visitors)::bigint AS visitors
        FROM (
            SELECT o.page_id, sum(o.visitors) AS visitors
            FROM open_returns AS o
            WHERE o.page_id = ANY ((SELECT old.targets FROM old)::bigint[])
              AND o.day_id BETWEEN (SELECT b.day_id FROM begins AS b) AND to_day
              AND o.previous_day < (SELECT b.day_id FROM begins AS b)
            GROUP BY o.page_id
            UNION ALL
            SELECT p.page_id, sum(returned_from_before(p.previous_days, p.visitors, day_date(p.day_id) - (SELECT b.date FROM begins AS b)))
            FROM packed_returns AS p
            WHERE p.page_id = ANY ((SELECT old.targets FROM old)::bigint[])
              AND p.day_id BETWEEN (SELECT b.day_id FROM begins AS b) AND to_day
            GROUP BY p.page_id
        ) AS r
        GROUP BY r.page_id
    )
    SELECT k.page_id,
           coalesce(k.pv, s.pv, 0),
           coalesce(k.uv, s.new_visitors, 0),
           coalesce(k.hot, s.hot, 0),
           CASE WHEN k.pv IS NOT NULL THEN k.uv
                WHEN s.pv IS NULL     THEN 0
                WHEN k.knows_new      THEN s.new_visitors + coalesce(r.visitors, 0)
           END
    FROM known AS k
    LEFT JOIN summed AS s   ON s.page_id = k.page_id
    LEFT JOIN returned AS r ON r.page_id = k.page_id;
END
$$;

COMMENT ON FUNCTION targets_sums(bigint[], integer, integer) IS 'Counted numbers of each of some targets in a range of days. uniques are null for pages (deleted), where they are unknown.';
