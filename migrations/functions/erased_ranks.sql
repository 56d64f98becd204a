-- Ranks of erased visitors. The table erased_visitors stores them as bits. Only the functions in this file pack and
-- unpack them.
CREATE FUNCTION unpack_ranks(part integer, place smallint, places bit) RETURNS SETOF bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE -- not STRICT, so that the planner inlines it
AS $$
    SELECT 256::bigint * part + 1 + n
    FROM generate_series(coalesce(place, 0), coalesce(place, 255)) AS n
    WHERE places IS NULL
       OR get_bit(places, n) = 1
$$;

COMMENT ON FUNCTION unpack_ranks(integer, smallint, bit) IS 'The ranks in a row of erased_visitors.';

CREATE VIEW erased_ranks AS
SELECT e.page_id, r.rank
FROM erased_visitors AS e
CROSS JOIN LATERAL unpack_ranks(e.part, e.place, e.places) AS r (rank);

COMMENT ON VIEW   erased_ranks         IS 'Ranks of erased or forgotten visitors. No later visitor gets one of these ranks.';
COMMENT ON COLUMN erased_ranks.page_id IS 'The target.';
COMMENT ON COLUMN erased_ranks.rank    IS 'Rank of the erased visitor.';

-- If a rank to add is already erased, place and places both become null. The table refuses such a row, so this function
-- fails, and no rank is lost.
CREATE FUNCTION erase_ranks(pages bigint[], ranks bigint[]) RETURNS bigint
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    INSERT INTO erased_visitors AS e (page_id, part, place, places)
    SELECT a.page_id, a.before / 256,
           CASE WHEN count(*) = 1 THEN min(a.before % 256) END,
           CASE WHEN count(*) > 1 THEN bit_or(set_bit(0::bit(256), (a.before % 256)::integer, 1)) END
    FROM (SELECT unnest(pages) AS page_id, unnest(ranks) - 1 AS before) AS a
    GROUP BY 1, 2
    ORDER BY 1, 2
    ON CONFLICT (page_id, part) DO UPDATE
        SET (place, places) = (
            SELECT NULL::smallint, CASE WHEN bit_count(b.erased & b.more) = 0 THEN b.erased | b.more END
            FROM (
                SELECT coalesce(e.places, set_bit(0::bit(256), e.place, 1))               AS erased,
                       coalesce(excluded.places, set_bit(0::bit(256), excluded.place, 1)) AS more
            ) AS b
        );
    RETURN coalesce(cardinality(ranks), 0);
END
$$;

COMMENT ON FUNCTION erase_ranks(bigint[], bigint[]) IS 'Adds ranks to the erased ones and returns their number. The values at one index of the arrays are a target and a rank. The caller has locked the counters of the targets, or no other session uses the targets.';

REVOKE ALL ON FUNCTION erase_ranks(bigint[], bigint[]) FROM PUBLIC;
