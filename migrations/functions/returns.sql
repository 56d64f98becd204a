-- A return is a visit of a visitor to a target that this visitor has visited on an earlier day. The view has the numbers of
-- all returns, packed or not. If a late visit was counted for a closed day, the same return may be in both tables, and then
-- has two rows here.
CREATE VIEW returns AS
SELECT o.page_id, o.day_id, o.previous_day, o.visitors
FROM open_returns AS o
UNION ALL
SELECT p.page_id, p.day_id, to_char(day_date(p.day_id) - u.days_before, 'YYYYMMDD')::integer, u.visitors
FROM packed_returns AS p
CROSS JOIN LATERAL unpack_returns(p.previous_days, p.visitors) AS u;

COMMENT ON VIEW   returns              IS 'Visitors of a target on a day, by the last earlier day on which they visited it. This makes uniques of any range exact.';
COMMENT ON COLUMN returns.page_id      IS 'The target.';
COMMENT ON COLUMN returns.day_id       IS 'The day, like 20190629.';
COMMENT ON COLUMN returns.previous_day IS 'The last earlier day on which these visitors visited the target.';
COMMENT ON COLUMN returns.visitors     IS 'Number of visitors.';

-- bits and numbers are the columns previous_days and visitors of packed_returns. Bit k of bits is 1 if the previous visit of
-- some visitors was k days before. numbers has a number for each of these bits: the visitors whose previous visit was k days
-- before, or more. So the requested number is the one of the first 1 bit after the first days_before bits. Without such a bit,
-- the result is 0. The function is a single expression, so that the planner inlines it.
CREATE FUNCTION returned_from_before(bits bit varying, numbers bit varying, days_before integer) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT substring(numbers,
                     (bit_count(substring(bits, 1, days_before)) * (length(numbers) / bit_count(bits)) + 1)::integer,
                     (length(numbers) / bit_count(bits))::integer)::bigint
$$;

COMMENT ON FUNCTION returned_from_before(bit varying, bit varying, integer) IS 'Number of visitors whose last earlier visit was more than this many days before (0: all), from previous_days and visitors of packed_returns.';

-- Example: a visitor came on day p and next on day n. Then a late visit of this visitor arrives, on a day d between p and n.
-- The visitor is removed from the return of day n with previous day p. The visitor is added to two returns: day n with
-- previous day d, and day d with previous day p.
CREATE FUNCTION add_packed_returns(pages bigint[], days integer[], previous integer[], added bigint[]) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM unnest(days, previous) AS a (day_id, previous_day) WHERE a.previous_day >= a.day_id) THEN
        RAISE EXCEPTION 'a previous day is not before its day' USING ERRCODE = '22023';
    END IF;
    WITH changes AS MATERIALIZED (
        SELECT a.page_id, a.day_id, day_date(a.day_id) - day_date(a.previous_day) AS days_before, a.visitors
        FROM unnest(pages, days, previous, added) AS a (page_id, day_id, previous_day, visitors)
    ), touched AS MATERIALIZED (
        SELECT DISTINCT c.page_id, c.day_id
        FROM changes AS c
    ), known AS MATERIALIZED (
        -- Rows are looked up one by one, because record_late_visits() disables the nested loops that a plain join would need.
        SELECT t.page_id, t.day_id, p.place, p.previous_days, p.visitors
        FROM touched AS t
        CROSS JOIN LATERAL (
            SELECT r.ctid AS place, r.previous_days, r.visitors
            FROM packed_returns AS r
            WHERE r.page_id = t.page_id
              AND r.day_id = t.day_id
            OFFSET 0
        ) AS p
    ), links AS MATERIALIZED (
        SELECT l.page_id, l.day_id, l.days_before, sum(l.visitors) AS visitors
        FROM (
            SELECT c.page_id, c.day_id, c.days_before, c.visitors
            FROM changes AS c
            UNION ALL
            SELECT k.page_id, k.day_id, u.days_before, u.visitors
            FROM known AS k
            CROSS JOIN LATERAL unpack_returns(k.previous_days, k.visitors) AS u
        ) AS l
        GROUP BY l.page_id, l.day_id, l.days_before
        HAVING sum(l.visitors) <> 0
    ), emptied AS (
        DELETE FROM packed_returns AS p
        WHERE p.ctid = ANY (ARRAY(
            SELECT k.place
            FROM known AS k
            WHERE NOT EXISTS (SELECT FROM links AS l WHERE l.page_id = k.page_id AND l.day_id = k.day_id)
        ))
    ), numbered AS (
        SELECT l.page_id, l.day_id, l.days_before,
               lpad('1', l.days_before - lag(l.days_before, 1, 0) OVER (of_day ORDER BY l.days_before), '0') AS bits,
               (sum(l.visitors) OVER (of_day ORDER BY l.days_before DESC))::bigint::bit(64)::text            AS number,
               length(ltrim((sum(l.visitors) OVER of_day)::bigint::bit(64)::text, '0'))                      AS width
        FROM links AS l
        WINDOW of_day AS (PARTITION BY l.page_id, l.day_id)
    )
    INSERT INTO packed_returns AS p (page_id, day_id, previous_days, visitors)
    SELECT n.page_id, n.day_id,
           string_agg(n.bits, '' ORDER BY n.days_before)::bit varying,
           string_agg(right(n.number, n.width), '' ORDER BY n.days_before)::bit varying
    FROM numbered AS n
    GROUP BY n.page_id, n.day_id
    ORDER BY n.page_id, n.day_id
    ON CONFLICT (page_id, day_id) DO UPDATE
        SET previous_days = excluded.previous_days,
            visitors      = excluded.visitors;
END
$$;

COMMENT ON FUNCTION add_packed_returns(bigint[], integer[], integer[], bigint[]) IS 'Adds visitors to returns of closed days, or removes them if added is negative. The values at one index of the arrays are a target, a day, a previous day and a number of visitors. The caller has locked the counters of the targets. Fails if a number would become negative.';

-- Locks the row of erasures, because a command that deletes rows or moves them between pages must not miss rows that this
-- function is packing. A call may be cancelled at any time: the next call packs the rest of open_returns.
CREATE FUNCTION pack_returns(from_page bigint, n integer, OUT packed bigint, OUT last_page bigint)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
DECLARE
    closed      integer[] := ARRAY(SELECT c.day_id FROM closed_days AS c);
    chosen      bigint[]; -- targets: each with the day in chosen_days
    chosen_days integer[];
    pages       bigint[];
    days        integer[];
    previous    integer[];
    visitors    bigint[];
BEGIN
    PERFORM FROM epochs WHERE name = 'erasures' FOR UPDATE;
    SELECT array_agg(c.page_id), array_agg(c.day_id)
    INTO chosen, chosen_days
    FROM (
        SELECT DISTINCT f.page_id, f.day_id
        FROM (
            SELECT o.page_id, o.day_id
            FROM open_returns AS o
            WHERE o.page_id >= from_page
              AND o.day_id = ANY (closed)
            ORDER BY o.page_id, o.day_id
            LIMIT n
        ) AS f
    ) AS c;
    PERFORM FROM counters AS c WHERE c.page_id = ANY (chosen) ORDER BY c.page_id FOR UPDATE;
    WITH gone AS (
        DELETE FROM open_returns AS o
        USING (SELECT unnest(chosen) AS page_id, unnest(chosen_days) AS day_id) AS c
        WHERE o.page_id = c.page_id
          AND o.day_id = c.day_id
        RETURNING o.page_id, o.day_id, o.previous_day, o.visitors
    )
    SELECT count(*), coalesce(max(g.page_id), from_page),
           array_agg(g.page_id), array_agg(g.day_id), array_agg(g.previous_day), array_agg(g.visitors)
    INTO packed, last_page, pages, days, previous, visitors
    FROM gone AS g;
    PERFORM add_packed_returns(pages, days, previous, visitors);
END
$$;

COMMENT ON FUNCTION pack_returns(bigint, integer) IS 'Packs the returns of closed days, target by target, starting at from_page, until n rows of open_returns are packed. Returns their number and the last target, which may have more.';

REVOKE ALL ON FUNCTION add_packed_returns(bigint[], integer[], integer[], bigint[]), pack_returns(bigint, integer) FROM PUBLIC;
