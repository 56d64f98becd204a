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
-- when they came before: then as for a group.
CREATE FUNCTION target_uniques(app integer, page bigint, from_day integer, to_day integer)
RETURNS TABLE (uniques bigint, exact boolean, standard_error double precision, erased bigint)
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    unknown bigint;
BEGIN
    SELECT coalesce(sum(d.new_visitors), 0), coalesce(sum(d.pv - d.new_visitors), 0)
    INTO uniques, unknown
    FROM days AS d
    WHERE d.page_id = page
      AND d.day_id BETWEEN from_day AND to_day;
    SELECT uniques + coalesce(sum(r.visitors) FILTER (WHERE r.previous_day < from_day), 0), unknown - coalesce(sum(r.visitors), 0)
    INTO uniques, unknown
    FROM returns AS r
    WHERE r.page_id = page
      AND r.day_id BETWEEN from_day AND to_day;
    IF unknown > 0 THEN
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
