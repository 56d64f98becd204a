-- Visits are counted only by these statements. A batch of visits is one transaction, sent in one round trip:
--
--   BEGIN; BatchBegin; CountersLock; BatchCheck; VisitsRecord; COMMIT
--
-- Some batches have more statements before CountersLock, in this order: VisitIDsAdd if visits have ids (ids that
-- were counted before are left out), PastDaysHold if visits are of past days, and PositionMove for each source
-- with a position, which is how far the source has been counted. Three statements may replace VisitsRecord:
-- LateVisitsRecord if visits may be late, NewVisitorsRecord if all visitors are hinted (certainly new), and
-- DaysVisited if no (target, visitor) pair is left to record.
--
-- CountersLock takes every row lock that the batch needs in one global order, so that no two batches can
-- deadlock. BatchCheck and VisitsRecord are separate statements after CountersLock, because they need snapshots
-- taken under these locks. They must see the rows and erasures of transactions that held the locks before.

-- name: BatchBegin :exec
-- Inserts the batch's id. If this connection is lost, BatchAbandon reports whether the transaction committed.
INSERT INTO batches (id, schema_version)
VALUES (@id, 3);

-- name: RoomProbe :one
-- Writes rows to a file and removes them again, to check whether a batch could be written. Fails if the disk is
-- full. Returns the number of rows.
SELECT probe_room()::bigint AS rows;

-- name: BatchCommit :exec
-- Commits the batch, so that its visits count.
COMMIT;

-- name: StandbyRequire :one
-- Returns whether COMMIT must wait for a synchronous standby. @unsaid is the default if no setting is stored.
-- Fails with SQLSTATE FF009 if COMMIT must wait for a standby, but PostgreSQL is not configured to wait.
SELECT CASE WHEN coalesce((SELECT nullif(value, 0) % 2 = 1 FROM epochs WHERE name = 'standby'), @unsaid::boolean)
            THEN require_standby() IS NOT NULL
            ELSE false
       END::boolean AS required;

-- name: StandbyStore :exec
-- Stores whether COMMIT must wait for a synchronous standby from now on.
SELECT say_standby(@required);

-- name: BatchRollback :exec
-- Rolls back a failed batch.
ROLLBACK;

-- name: BatchAbandon :one
-- Waits for the transaction of the batch with this id if it is still running. Returns true if the batch never
-- committed, and no longer can. Returns false if it committed. Repeated calls return the same result. Batches
-- are stored in two tables in turn. The id is inserted into both, because the batch may start in either turn.
WITH claimed AS (
    INSERT INTO batches AS b (id, turn, schema_version, abandoned)
    SELECT @id, generate_series(0, 1), 3, true
    ON CONFLICT (id, turn) DO UPDATE
        SET abandoned = b.abandoned
    RETURNING b.abandoned
)
SELECT bool_and(abandoned)::boolean AS abandoned
FROM claimed;

-- name: BatchesEmpty :one
-- Deletes the ids of old batches, which no instance looks up any more. Returns false if there were none, or if
-- their table is in use. Does not wait for locks.
SELECT empty_batches()::boolean AS emptied;

-- name: CountersLock :many
-- Locks the counters of the batch's targets. Adds the batch's visits to hot, and its hinted visitors (certainly
-- new) to pv and uv. Returns the new sums.
INSERT INTO counters AS c (page_id, hot, pv, uv)
SELECT unnest(@pages::bigint[])     AS page_id,
       unnest(@hots::bigint[])      AS hot,
       unnest(@newcomers::bigint[]) AS pv,
       unnest(@newcomers::bigint[]) AS uv
ORDER BY page_id
ON CONFLICT (page_id) DO UPDATE
    SET hot = c.hot + excluded.hot,
        pv  = c.pv + excluded.pv,
        uv  = c.uv + excluded.uv
RETURNING page_id, hot, pv, uv;

-- name: BasisGet :one
-- The basis is the version of those contents of tables that instances may cache. An instance reads the basis first, so that
-- the contents that it then reads are at least as new as this version.
SELECT b.basis::text AS basis
FROM bases AS b;

-- name: BatchCheck :one
-- Fails with SQLSTATE FF001 if the batch's basis has changed (an empty basis is not checked). Fails with FF002
-- if a site of the batch was already counted on a later day. Fails with FF003 if a day of the batch has not
-- started in any time zone. Also makes the check of StandbyRequire, and returns its result. require_basis() and
-- require_days() are called only to raise an error. Calling them for every batch would take most of this
-- statement's time.
SELECT CASE WHEN @basis::text <> '' AND b.basis IS DISTINCT FROM @basis
            THEN require_basis(@basis)
       END AS basis_holds,
       CASE WHEN latest_day() < ANY (@days::integer[])
              OR EXISTS (
                  SELECT
                  FROM (SELECT unnest(@sites::bigint[]) AS site_id, unnest(@days::integer[]) AS day_id) AS t
                  CROSS JOIN LATERAL (SELECT FROM days AS d WHERE d.page_id = t.site_id AND d.day_id > t.day_id LIMIT 1) AS l
              )
            THEN require_days(@sites, @days)
       END AS days_hold,
       CASE WHEN coalesce((SELECT nullif(value, 0) % 2 = 1 FROM epochs WHERE name = 'standby'), @unsaid::boolean)
            THEN require_standby() IS NOT NULL
            ELSE false
       END::boolean AS required
FROM bases AS b;

-- name: SitesLastDays :many
-- The last day on which each site was counted.
SELECT s.site::bigint AS site, d.day_id AS day
FROM (SELECT unnest(@sites::bigint[]) AS site) AS s
CROSS JOIN LATERAL (
    SELECT l.day_id
    FROM days AS l
    WHERE l.page_id = s.site
    ORDER BY l.day_id DESC
    LIMIT 1
) AS d;

-- name: VisitsRecord :many
-- Decides whether each (target, visitor) pair of the batch counts, and records it. Returns for each pair its place in
-- the arrays (from 1), and the visitor's rank. newcomer is true if the visitor is new to the target. counted is true if
-- this was the visitor's first visit to the target on the day.
--
-- The first five arrays are the columns of a table with a row for each distinct pair, in the order of arrival:
--   pages, ips, days  target, visitor and day
--   hinted            the visitor is certainly new, and CountersLock has already counted the visitor, who is not looked
--                     up here; if the hint is wrong, an insert violates the key of visitors or visits
--   tag_sets          the pair's tags, as the text of an array ('': not recorded, as for pairs at pages)
-- The next four arrays are the columns of a table with a row for each target of the batch: the target, the
-- target's site (0: the target is a site), the day, and the number of visits. tags has the tags of all pairs in
-- the format of tag_news.
--
-- PostgreSQL plans the statement once, perhaps while the tables are empty, but the plan must suit large tables. So the
-- statement leaves the planner no choice. Tables made from arrays are not joined with each other, and counters is
-- updated through a conflict with its key. For each visitor, a separate subquery reads the first row, in key order, of
-- a range that contains only this address. Only the primary key has this order. (With a plain equality, the index of
-- ranks would seem as cheap on empty tables.) Writers' sessions disable other scans.
WITH asked AS (
    SELECT unnest(@pages::bigint[])                   AS page_id,
           unnest(@ips::inet[])                       AS ip,
           unnest(@days::integer[])                   AS day_id,
           unnest(@hinted::boolean[])                 AS hinted,
           unnest(@tag_sets::text[])                  AS tags,
           generate_subscripts(@pages::bigint[], 1)   AS place
), found AS MATERIALIZED (
    SELECT a.page_id, a.ip, a.day_id, a.place, a.hinted, a.tags, v.rank, v.last_day
    FROM asked AS a
    LEFT JOIN LATERAL (
        SELECT known.rank, known.last_day
        FROM visitors AS known
        WHERE NOT a.hinted
          AND known.page_id = a.page_id
          AND known.ip BETWEEN a.ip AND a.ip
        ORDER BY known.ip
        LIMIT 1
    ) AS v ON true
), decided AS MATERIALIZED (
    -- uv in counters is also the last rank that a visitor has got. Newcomers get the ranks after uv, in the
    -- order of arrival. uv already includes the hinted newcomers.
    SELECT f.page_id, f.ip, f.day_id, f.place, f.hinted, f.tags, f.last_day,
           f.rank IS NULL                           AS newcomer,
           f.rank IS NULL OR f.last_day < f.day_id  AS counted,
           CASE
               WHEN f.rank IS NOT NULL THEN f.rank
               ELSE (SELECT c.uv FROM counters AS c WHERE c.page_id = f.page_id)
                        - count(*) FILTER (WHERE f.hinted) OVER of_page
                        + row_number() OVER (of_page ORDER BY f.place)
           END AS rank
    FROM found AS f
    WINDOW of_page AS (PARTITION BY f.page_id, f.rank IS NULL)
), newcomers AS (
    INSERT INTO visitors (page_id, ip, rank, first_day, last_day)
    SELECT page_id, ip, rank, day_id, day_id
    FROM decided
    WHERE newcomer
    ORDER BY page_id, ip
), returned AS (
    INSERT INTO visitors AS v (page_id, ip, rank, first_day, last_day)
    SELECT page_id, ip, rank, day_id, day_id
    FROM decided
    WHERE counted AND NOT newcomer
    ORDER BY page_id, ip
    ON CONFLICT (page_id, ip) DO UPDATE
        SET last_day = excluded.last_day
), visited AS (
    INSERT INTO visits (page_id, day_id, previous_day, ip, tags)
    SELECT page_id, day_id, coalesce(last_day, 0), ip, nullif(tags, '')::integer[]
    FROM decided
    WHERE counted
    ORDER BY page_id, ip
), dated AS (
    INSERT INTO days AS d (page_id, site_id, day_id, hot, pv, new_visitors)
    SELECT page_id, nullif(max(site_id), 0), day_id, sum(hot), sum(pv), sum(new_visitors)
    FROM (
        SELECT unnest(@targets::bigint[])     AS page_id,
               unnest(@sites::bigint[])       AS site_id,
               unnest(@target_days::integer[]) AS day_id,
               unnest(@hots::bigint[])        AS hot,
               0 AS pv,
               0 AS new_visitors
        UNION ALL
        SELECT page_id, 0, day_id, 0, 1, newcomer::integer
        FROM decided
        WHERE counted
    ) AS news
    GROUP BY page_id, day_id
    ORDER BY page_id
    ON CONFLICT (page_id, day_id) DO UPDATE
        SET hot          = d.hot + excluded.hot,
            pv           = d.pv + excluded.pv,
            new_visitors = d.new_visitors + excluded.new_visitors
), come_back AS (
    INSERT INTO open_returns AS r (page_id, day_id, previous_day, visitors)
    SELECT page_id, day_id, last_day, count(*)
    FROM decided
    WHERE counted AND NOT newcomer
    GROUP BY page_id, day_id, last_day
    ORDER BY page_id, last_day
    ON CONFLICT (page_id, day_id, previous_day) DO UPDATE
        SET visitors = r.visitors + excluded.visitors
), summed AS (
    -- The rows of counters exist, and CountersLock has locked them. The inserted row must pass the checks of
    -- counters (such as hot >= pv) before PostgreSQL finds the conflict. So its hot equals its pv, although hot
    -- is not added.
    INSERT INTO counters AS c (page_id, hot, pv, uv)
    SELECT page_id, count(*), count(*), sum(newcomer::integer)
    FROM decided
    WHERE counted AND NOT hinted
    GROUP BY page_id
    ON CONFLICT (page_id) DO UPDATE
        SET pv = c.pv + excluded.pv,
            uv = c.uv + excluded.uv
), tagged AS (
    INSERT INTO tag_news (verdicts, tags)
    SELECT array_agg(counted::integer + newcomer::integer ORDER BY place), @tags::bytea
    FROM decided
    WHERE octet_length(@tags) > 0
    HAVING bool_or(counted)
)
SELECT place::integer    AS place,
       rank::bigint      AS rank,
       newcomer::boolean AS newcomer,
       counted::boolean  AS counted
FROM decided;

-- name: NewVisitorsRecord :exec
-- Does the work of VisitsRecord if all pairs of the batch are hinted. Then CountersLock has already counted all
-- pairs, and nothing needs to be decided. So this statement takes only four fifths of the time of VisitsRecord.
-- If a hint is wrong, an insert violates the key of visitors or visits.
--
-- pages, ips, days, places, later and tag_sets are the columns of a table with a row for each pair, in key
-- order. places is the place of the pair's target among the targets (from 1). later is how many newcomers
-- arrived at the target after the pair's visitor. The other five arrays are the columns of a table of the
-- targets, in order of id. tags has the tags of all pairs, as in VisitsRecord.
--
-- The last ranks of the targets are read from an array, because a join of the two tables would give the planner
-- a choice of plans.
WITH last_ranks AS MATERIALIZED (
    SELECT array_agg((SELECT c.uv FROM counters AS c WHERE c.page_id = t.page_id) ORDER BY t.page_id) AS uvs
    FROM (SELECT unnest(@targets::bigint[]) AS page_id) AS t
), visited AS (
    INSERT INTO visits (page_id, day_id, previous_day, ip, tags)
    SELECT unnest(@pages::bigint[])                          AS page_id,
           unnest(@days::integer[])                          AS day_id,
           0,
           unnest(@ips::inet[])                              AS ip,
           nullif(unnest(@tag_sets::text[]), '')::integer[] AS tags
), dated AS (
    INSERT INTO days AS d (page_id, site_id, day_id, hot, pv, new_visitors)
    SELECT unnest(@targets::bigint[])          AS page_id,
           nullif(unnest(@sites::bigint[]), 0) AS site_id,
           unnest(@target_days::integer[])     AS day_id,
           unnest(@hots::bigint[])             AS hot,
           unnest(@newcomers::bigint[])        AS pv,
           unnest(@newcomers::bigint[])        AS new_visitors
    ON CONFLICT (page_id, day_id) DO UPDATE
        SET hot          = d.hot + excluded.hot,
            pv           = d.pv + excluded.pv,
            new_visitors = d.new_visitors + excluded.new_visitors
), tagged AS (
    INSERT INTO tag_news (tags)
    SELECT @tags::bytea
    WHERE octet_length(@tags) > 0
)
INSERT INTO visitors (page_id, ip, rank, first_day, last_day)
SELECT p.page_id, p.ip, (SELECT l.uvs FROM last_ranks AS l)[p.place] - p.later, p.day_id, p.day_id
FROM (
    SELECT unnest(@pages::bigint[])   AS page_id,
           unnest(@ips::inet[])       AS ip,
           unnest(@days::integer[])   AS day_id,
           unnest(@places::integer[]) AS place,
           unnest(@later::bigint[])   AS later
) AS p;

-- name: PastDaysHold :exec
-- Locks the past days and the apps of a batch. The values at one index of the arrays are an app and a day. late
-- is true for a batch of late visits, which may be earlier than other visits of their visitors. Fails with
-- SQLSTATE FF003 if a day has not started in any time zone, and with FF005 if an app no longer keeps a day.
-- Fails with FF006 if a day is closed and late is false, and with FF007 if an app is locked.
SELECT require_past_days(@apps::integer[], @days::integer[], @late::boolean);

-- name: PastDaysAreLate :one
-- Returns whether visits of these sites and days may be late: the site was counted on a later day, or the day is
-- closed. The values at one index of the arrays are a site and a day.
SELECT (EXISTS (SELECT FROM closed_days AS c WHERE c.day_id = ANY (@days::integer[]))
        OR EXISTS (
            SELECT
            FROM (SELECT unnest(@sites::bigint[]) AS site_id, unnest(@days) AS day_id) AS t
            CROSS JOIN LATERAL (
                SELECT d.day_id
                FROM days AS d
                WHERE d.page_id = t.site_id
                ORDER BY d.day_id DESC
                LIMIT 1
            ) AS l
            WHERE l.day_id > t.day_id
        ))::boolean AS late;

-- name: LateVisitsRecord :many
-- Does the work of VisitsRecord for visits of any days. pages, ips, days and turns are the columns of a table
-- with a row for each distinct (target, visitor) pair and day, in the order of arrival. turns counts the rows of
-- the same pair up to this row. The next four arrays are the columns of a table with a row for each day of a
-- target. tags and tag_sets are the tags of the first table, as in VisitsRecord. Returns a row for each row of
-- the first table.
SELECT l.place::integer    AS place,
       l.rank::bigint      AS rank,
       l.newcomer::boolean AS newcomer,
       l.counted::boolean  AS counted
FROM record_late_visits(@pages::bigint[], @ips::inet[], @days::integer[], @turns::integer[],
                        @targets::bigint[], @sites::bigint[], @target_days::integer[], @hots::bigint[],
                        @tags::bytea, @tag_sets::text[]) AS l;

-- name: FirstPossibleDay :one
-- The first day for which an app accepts visits; 0: any.
SELECT coalesce(first_possible_day(@app_id::integer), 0)::integer AS first_day;

-- name: DaysVisited :exec
-- Adds a batch's visits to the daily numbers of their targets. Replaces VisitsRecord if the visitors of all visits were
-- already counted on this day, so that the batch has no (target, visitor) pairs. Writes no tags, because tags belong to
-- pairs.
INSERT INTO days AS d (page_id, site_id, day_id, hot, pv, new_visitors)
SELECT unnest(@targets::bigint[])                AS page_id,
       nullif(unnest(@sites::bigint[]), 0)       AS site_id,
       unnest(@target_days::integer[])           AS day_id,
       unnest(@hots::bigint[])                   AS hot,
       0,
       0
ORDER BY page_id
ON CONFLICT (page_id, day_id) DO UPDATE
    SET hot = d.hot + excluded.hot;

-- name: VisitorsCount :one
-- The number of visitors of all targets: the rows of visitors, and the erased and forgotten visitors.
SELECT coalesce(sum(uv), 0)::bigint AS visitors
FROM counters;

-- name: ReadInOrder :exec
-- Makes the rest of the transaction use an index that has the requested order, even if another plan seems
-- cheaper. Also sets the transaction's statement timeout.
SELECT set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true),
       set_config('statement_timeout', @timeout::text, true);

-- name: VisitorsAfter :many
-- Returns the next @rows visitors after a key, in key order. A caller reads all visitors by repeated calls after
-- ReadInOrder.
SELECT page_id, ip
FROM visitors
WHERE (page_id, ip) > (@page_id::bigint, @ip::inet)
ORDER BY page_id, ip
LIMIT @rows;
