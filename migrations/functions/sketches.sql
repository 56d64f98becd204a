-- Register and value of a visitor in a sketch, from the visitor's hash. The first 12 bits are the register, and the leading
-- zeros of the bytes 2 to 5 give the value. The hash is sha256(inet_send(ip)), which is the same in every version of
-- PostgreSQL. The hash is an argument, so that the function is a single expression, which the planner inlines.
CREATE FUNCTION sketch_entry(hash bytea) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT (get_byte(hash, 0) * 16 + get_byte(hash, 1) / 16) * 64
               + 33 - length(ltrim((get_byte(hash, 2)::bigint * 16777216 + get_byte(hash, 3) * 65536
                                        + get_byte(hash, 4) * 256 + get_byte(hash, 5))::bit(32)::text, '0'))
$$;

COMMENT ON FUNCTION sketch_entry(bytea) IS 'Register of a HyperLogLog sketch for a visitor and its value, as register * 64 + value, from sha256(inet_send(ip)).';

-- Ertl's estimator (New cardinality estimation algorithms for HyperLogLog sketches, 2017): it needs no correction for small
-- and medium numbers. The estimator's correction for full registers is left out, because it only matters for more than a
-- thousand million visitors.
CREATE FUNCTION sketch_estimate(used bigint, weight double precision) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
DECLARE
    x     double precision := (4096 - used) / 4096.0;
    y     double precision := 1;
    sigma double precision := x;
    last  double precision;
BEGIN
    IF used = 0 THEN
        RETURN 0;
    END IF;
    LOOP
        x := CASE WHEN x < 1e-150 THEN 0 ELSE x * x END; -- x * x would underflow
        last := sigma;
        sigma := sigma + x * y;
        y := y + y;
        EXIT WHEN sigma = last;
    END LOOP;
    RETURN 4096.0 * 4096.0 / (2 * ln(2.0::double precision)) / (4096 * sigma + weight);
END
$$;

COMMENT ON FUNCTION sketch_estimate(bigint, double precision) IS 'Estimated number of visitors in a sketch, from the number of registers that are not 0, and the sum of 2^-value over them.';

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

COMMENT ON FUNCTION merge_sketches(bigint, bigint) IS 'Moves the sketches of one target into those of another. The higher value of each register stays.';

-- A sketch is not written if all of its registers are already high enough, as for most targets with many visitors. The entries
-- of a sketch are sorted, so a register is found by binary search.
CREATE FUNCTION add_to_sketches(pages bigint[], days integer[], ips inet[]) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
SET enable_seqscan = off
SET enable_nestloop = on
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
BEGIN
    WITH arrived AS MATERIALIZED (
        SELECT h.page_id, h.day_id, max(sketch_entry(h.hash)) AS entry
        FROM (SELECT a.page_id, a.day_id, sha256(inet_send(a.ip)) AS hash
              FROM unnest(pages, days, ips) AS a (page_id, day_id, ip)
              OFFSET 0) AS h
        GROUP BY h.page_id, h.day_id, sketch_entry(h.hash) / 64
    ), grouped AS MATERIALIZED (
        SELECT a.page_id, a.day_id, array_agg(a.entry) AS entries
        FROM arrived AS a
        GROUP BY a.page_id, a.day_id
    ), known AS MATERIALIZED (
        -- The concatenation copies the array, so that the stored array is read only once.
        SELECT g.page_id, g.day_id, g.entries AS arrived, coalesce(s.entries, '{}') || '{}'::integer[] AS entries
        FROM grouped AS g
        LEFT JOIN sketches AS s ON s.page_id = g.page_id AND s.day_id = g.day_id
    ), raised AS MATERIALIZED (
        SELECT k.page_id, k.day_id, k.entries, array_agg(e.entry) AS arrived
        FROM known AS k
        CROSS JOIN LATERAL (
            SELECT u.entry, width_bucket(u.entry, k.entries) AS place
            FROM unnest(k.arrived) AS u (entry)
        ) AS e
        WHERE coalesce(k.entries[e.place], -1) <> e.entry
          AND coalesce(k.entries[e.place + 1] / 64, -1) <> e.entry / 64
        GROUP BY k.page_id, k.day_id, k.entries
    ), highest AS (
        SELECT m.page_id, m.day_id, max(m.entry) AS entry
        FROM (SELECT r.page_id, r.day_id, unnest(r.entries || r.arrived) AS entry FROM raised AS r) AS m
        GROUP BY m.page_id, m.day_id, m.entry / 64
    )
    INSERT INTO sketches AS s (page_id, day_id, entries)
    SELECT h.page_id, h.day_id, array_agg(h.entry ORDER BY h.entry)
    FROM highest AS h
    GROUP BY h.page_id, h.day_id
    ORDER BY h.page_id, h.day_id
    ON CONFLICT (page_id, day_id) DO UPDATE
        SET entries = excluded.entries;
END
$$;

COMMENT ON FUNCTION add_to_sketches(bigint[], integer[], inet[]) IS 'Adds visitors to the sketches of targets on closed days. The higher value of each register stays. The values at one index of the arrays are a target, a day and a visitor.';

REVOKE ALL ON FUNCTION merge_sketches(bigint, bigint), add_to_sketches(bigint[], integer[], inet[]) FROM PUBLIC;
