-- The one write path. A batch of visits is one transaction of these statements, sent in one round trip:
--
--   BEGIN; BatchBegin; CountersLock; VisitsRecord; COMMIT
--
-- CountersLock takes every row lock that the batch needs, in the one global order, so that no two batches can deadlock.
-- VisitsRecord comes after it as a statement of its own, because it needs a snapshot taken under those locks: what
-- another batch inserted meanwhile must be visible.

-- name: BatchBegin :exec
-- Claims the batch's id. If this connection is lost, BatchAbandon tells whether the transaction committed.
INSERT INTO batches (id)
VALUES (@id);

-- name: BatchAbandon :one
-- Waits for the transaction that began with this id, if it still runs. True: it never committed, and no longer can. False:
-- it did commit. However often it is asked, the answer is the same.
INSERT INTO batches AS b (id, abandoned)
VALUES (@id, true)
ON CONFLICT (id) DO UPDATE
    SET abandoned = b.abandoned
RETURNING abandoned;

-- name: BatchesPrune :execrows
-- Forgets some of the batches before an id, the oldest first; zero rows: there are none left.
DELETE FROM batches
WHERE id IN (
    SELECT old.id
    FROM batches AS old
    WHERE old.id < @before
    ORDER BY old.id
    LIMIT 50000
);

-- name: CountersLock :many
-- Adds the batch's visits to hot and locks the counters of its targets. Returns the sums as they stand with the batch's
-- hot, and with pv and uv before the batch.
INSERT INTO counters AS c (page_id, hot)
SELECT unnest(@pages::bigint[]) AS page_id,
       unnest(@hots::bigint[])  AS hot
ORDER BY page_id
ON CONFLICT (page_id) DO UPDATE
    SET hot = c.hot + excluded.hot
RETURNING page_id, hot, pv, uv;

-- name: VisitsRecord :many
-- Decides what each (target, visitor) of the batch is, and writes it down. The four arrays are one table, a row for
-- each distinct pair, in the order of arrival. hinted means "surely a new visitor": the look-up is left out, and where
-- the hint was wrong the insert fails on visitors_pkey.
-- Returns for each row: its place in the arrays (from 1), the visitor's rank, whether the visitor is new to the target, and
-- whether this visit was its first on the day.
--
-- No two of the tables made here are joined with each other, nor is `visitors` joined as a whole: the planner cannot know
-- their sizes, and would one day choose badly. A visitor is looked up row by row: LIMIT 1 keeps the planner to it.
WITH asked AS (
    SELECT unnest(@pages::bigint[])                   AS page_id,
           unnest(@ips::inet[])                       AS ip,
           unnest(@days::integer[])                   AS day_id,
           unnest(@hinted::boolean[])                 AS hinted,
           generate_subscripts(@pages::bigint[], 1)   AS place
), found AS MATERIALIZED (
    SELECT a.page_id, a.ip, a.day_id, a.place, v.rank, v.last_day
    FROM asked AS a
    LEFT JOIN LATERAL (
        SELECT known.rank, known.last_day
        FROM visitors AS known
        WHERE NOT a.hinted
          AND known.page_id = a.page_id
          AND known.ip = a.ip
        LIMIT 1
    ) AS v ON true
), ranked AS MATERIALIZED (
    -- The counters row is the rank sequence: newcomers get the numbers after uv, in the order of arrival.
    SELECT f.page_id, f.ip, f.day_id, f.place,
           f.rank IS NULL                           AS newcomer,
           f.rank IS NULL OR f.last_day < f.day_id  AS first_today,
           coalesce(f.rank,
                    (SELECT c.uv FROM counters AS c WHERE c.page_id = f.page_id)
                        + row_number() OVER (PARTITION BY f.page_id, f.rank IS NULL ORDER BY f.place)
           ) AS rank
    FROM found AS f
), newcomers AS (
    INSERT INTO visitors (page_id, ip, rank, first_day, last_day)
    SELECT page_id, ip, rank, day_id, day_id
    FROM ranked
    WHERE newcomer
    ORDER BY page_id, ip
    RETURNING page_id
), returned AS (
    INSERT INTO visitors AS v (page_id, ip, rank, first_day, last_day)
    SELECT page_id, ip, rank, day_id, day_id
    FROM ranked
    WHERE first_today AND NOT newcomer
    ORDER BY page_id, ip
    ON CONFLICT (page_id, ip) DO UPDATE
        SET last_day = excluded.last_day
), counted AS (
    INSERT INTO visits (page_id, day_id, ip)
    SELECT page_id, day_id, ip
    FROM ranked
    WHERE first_today
    ORDER BY page_id, ip
    ON CONFLICT DO NOTHING
    RETURNING page_id, ip
), summed AS (
    UPDATE counters AS c
    SET pv = c.pv + n.pv,
        uv = c.uv + n.uv
    FROM (
        SELECT page_id, sum(pv) AS pv, sum(uv) AS uv
        FROM (
            SELECT page_id, 1 AS pv, 0 AS uv FROM counted
            UNION ALL
            -- Not FROM ranked: so the visitors are inserted before uv is raised, and a wrong hint fails on visitors_pkey,
            -- which tells what is wrong, not on the check of counters, which does not.
            SELECT page_id, 0 AS pv, 1 AS uv FROM newcomers
        ) AS news
        GROUP BY page_id
    ) AS n
    WHERE c.page_id = n.page_id
)
SELECT place::integer  AS place,
       rank::bigint    AS rank,
       newcomer::boolean AS newcomer,
       ((page_id, ip) IN (SELECT page_id, ip FROM counted))::boolean AS counted
FROM ranked;
