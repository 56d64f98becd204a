-- How many visitors came to any of some targets in a range of days. From their rows, where all are
-- kept; else from the sketches of the days that are closed and the rows of the others.
--
-- A dropped partition is gone for every snapshot. So visits is locked first, which keeps days from
-- being dropped, and what is kept is read by a later statement: the function is volatile, and each
-- statement has a snapshot of its own. The rows, and whether they are all there, have the same one.
CREATE FUNCTION group_uniques(app integer, pages bigint[], from_day integer, to_day integer)
RETURNS TABLE (uniques bigint, exact boolean, standard_error double precision, erased bigint)
LANGUAGE plpgsql VOLATILE
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    all_kept  boolean;
    open_days integer[];
BEGIN
    PERFORM FROM ONLY visits;
    -- Erased visitors cannot be told apart; each of their days may be one more visitor.
    SELECT k.all_kept,
           (SELECT coalesce(sum(e.visitors), 0)
            FROM erased_visits AS e
            WHERE e.page_id = ANY (pages)
              AND e.day_id BETWEEN from_day AND to_day),
           (SELECT count(DISTINCT v.ip)
            FROM visits AS v
            WHERE k.all_kept
              AND v.page_id = ANY (pages)
              AND v.day_id BETWEEN from_day AND to_day)
    INTO all_kept, erased, uniques
    FROM (SELECT from_day >= coalesce((SELECT o.from_day FROM visits_kept AS o WHERE o.app_id = app), 0) AS all_kept) AS k;
    IF all_kept THEN
        exact := erased = 0;
        standard_error := 0;
        RETURN NEXT;
        RETURN;
    END IF;

    open_days := ARRAY(
        SELECT DISTINCT d.day_id
        FROM pages AS s
        JOIN days AS d ON d.page_id = s.id AND d.day_id BETWEEN from_day AND to_day
        WHERE s.app_id = app
          AND s.site_id IS NULL
          AND NOT EXISTS (SELECT FROM closed_days AS c WHERE c.day_id = d.day_id)
        ORDER BY d.day_id
    );
    WITH open AS MATERIALIZED (
        SELECT sha256(inet_send(v.ip)) AS hash
        FROM visits AS v
        WHERE v.page_id = ANY (pages)
          AND v.day_id = ANY (open_days)
          AND v.day_id >= open_days[1] -- so that the days before need not be opened
    ), entries AS (
        SELECT unnest(s.entries) AS entry
        FROM sketches AS s
        WHERE s.page_id = ANY (pages)
          AND s.day_id BETWEEN from_day AND to_day
        UNION ALL
        SELECT sketch_entry(o.hash)
        FROM open AS o
    ), highest AS (
        SELECT max(e.entry) % 64 AS value
        FROM entries AS e
        GROUP BY e.entry / 64
    )
    SELECT round(sketch_estimate(count(*), coalesce(sum(power(2::double precision, -h.value)), 0)))
    INTO uniques
    FROM highest AS h;
    exact := false;
    standard_error := 0.01625;
    RETURN NEXT;
END
$$;

COMMENT ON FUNCTION group_uniques(integer, bigint[], integer, integer) IS 'How many visitors came to any of some targets in a range of days, and how sure that is.';

-- Exactly, whatever rows are gone: see returns. In sums of deleted pages it is not known of visitors
-- when they came before: nobody is new there, not even on the first day, and uniques are null.
--
-- No more is read than has to be. All days together are the counters. In a range before which nobody
-- came, nobody has returned from before it. Any other is as good as one that begins on the first of
-- its days that was counted, which is a date, whatever number a caller has written.
CREATE FUNCTION target_sums(page bigint, from_day integer, to_day integer, OUT pv bigint, OUT new_visitors bigint, OUT hot bigint, OUT uniques bigint)
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    first_day integer; -- of the target
    last_day  integer;
    begins    integer; -- the first day in the range
    told      boolean; -- who is new
    returned  bigint := 0;
BEGIN
    SELECT d.day_id, d.new_visitors > 0
    INTO first_day, told
    FROM days AS d
    WHERE d.page_id = page
    ORDER BY d.day_id
    LIMIT 1;
    SELECT d.day_id
    INTO last_day
    FROM days AS d
    WHERE d.page_id = page
    ORDER BY d.day_id DESC
    LIMIT 1;
    IF told AND from_day <= first_day AND to_day >= last_day THEN
        SELECT c.pv, c.uv, c.hot, c.uv
        INTO pv, new_visitors, hot, uniques
        FROM counters AS c
        WHERE c.page_id = page;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;

    SELECT coalesce(sum(d.pv), 0), coalesce(sum(d.new_visitors), 0), coalesce(sum(d.hot), 0), min(d.day_id)
    INTO pv, new_visitors, hot, begins
    FROM days AS d
    WHERE d.page_id = page
      AND d.day_id BETWEEN from_day AND to_day;
    IF from_day > first_day THEN
        SELECT coalesce(sum(r.visitors), 0)
        INTO returned
        FROM (
            SELECT o.visitors
            FROM open_returns AS o
            WHERE o.page_id = page
              AND o.day_id BETWEEN begins AND to_day
              AND o.previous_day < begins
            UNION ALL
            SELECT returned_from_before(p.previous_days, p.visitors, day_date(p.day_id) - day_date(begins))
            FROM packed_returns AS p
            WHERE p.page_id = page
              AND p.day_id BETWEEN begins AND to_day
        ) AS r;
    END IF;
    IF told OR pv = 0 THEN
        uniques := new_visitors + returned;
    END IF;
END
$$;

COMMENT ON FUNCTION target_sums(bigint, integer, integer) IS 'What was counted for a target in a range of days; uniques are null in sums of deleted pages, where nobody can tell.';

-- In sums of deleted pages as for a group.
CREATE FUNCTION target_uniques(app integer, page bigint, from_day integer, to_day integer)
RETURNS TABLE (uniques bigint, exact boolean, standard_error double precision, erased bigint)
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    SELECT s.uniques
    INTO uniques
    FROM target_sums(page, from_day, to_day) AS s;
    IF uniques IS NULL THEN
        RETURN QUERY SELECT * FROM group_uniques(app, ARRAY[page], from_day, to_day);
        RETURN;
    END IF;
    exact := true;
    standard_error := 0;
    erased := 0;
    RETURN NEXT;
END
$$;

COMMENT ON FUNCTION target_uniques(integer, bigint, integer, integer) IS 'How many visitors came to a target in a range of days, and how sure that is: exact but for sums of deleted pages.';
