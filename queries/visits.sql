-- The one write path. A batch of visits is one transaction of these statements, sent in one round
-- trip:
--
--   BEGIN; BatchBegin; CountersLock; BatchCheck; VisitsRecord; COMMIT
--
-- PositionMove comes before CountersLock, once for each source of the visits that has a position,
-- and PastDaysHold before that where visits are of past days. Where such visits are late,
-- LateVisitsRecord takes the place of VisitsRecord; where all visitors are hinted to be new,
-- NewVisitorsRecord does. Where visits have ids, VisitIDsAdd comes behind BatchBegin: the batch has
-- none of those that were counted before, as far as is known then.
--
-- CountersLock takes every row lock that the batch needs, in the one global order, so that no two
-- batches can deadlock. BatchCheck and VisitsRecord come after it as statements of their own,
-- because they need snapshots taken under those locks: what another batch inserted meanwhile must
-- be visible, and so must an erasure that held the locks before.

-- name: BatchBegin :exec
-- Claims the batch's id. If this connection is lost, BatchAbandon tells whether the transaction
-- committed.
INSERT INTO batches (id, schema_version)
VALUES (@id, 3);

-- name: RoomProbe :one
-- How many rows were written to a file and let go again, in a batch that tries whether one can be
-- written; fails where the disk is full.
SELECT probe_room()::bigint AS rows;

-- name: BatchCommit :exec
-- Ends the batch. From here on its visits count.
COMMIT;

-- name: StandbyRequire :one
-- Whether a synchronous standby is required, which @unsaid decides where nobody has said so yet. Fails
-- with SQLSTATE FF009 where one is, and COMMIT waits for none.
SELECT CASE WHEN coalesce((SELECT nullif(value, 0) % 2 = 1 FROM epochs WHERE name = 'standby'), @unsaid::boolean)
            THEN require_standby() IS NOT NULL
            ELSE false
       END::boolean AS required;

-- name: StandbySay :exec
-- Says whether one is required from now on.
SELECT say_standby(@required);

-- name: BatchRollback :exec
-- Ends a batch that failed.
ROLLBACK;

-- name: BatchAbandon :one
-- Waits for the transaction that began with this id, if it still runs. True: it never committed,
-- and no longer can. False: it did commit. However often it is asked, the answer is the same. It
-- claims the id in both tables, since nobody knows in whose turn the batch began, or would begin.
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
-- Forgets the batches about which nobody can ask any more; false: there were none, or somebody uses
-- their table. It waits for nobody.
SELECT empty_batches()::boolean AS emptied;

-- name: CountersLock :many
-- Adds the batch's visits to hot, and its hinted newcomers to pv and uv, and locks the counters of
-- its targets. Returns the sums as they stand with all that.
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
-- What an instance may remember rests on this; it is read before anything is remembered.
SELECT b.basis::text AS basis
FROM bases AS b;

-- name: BatchCheck :one
-- Fails with SQLSTATE FF001 when the basis that the batch was made from no longer holds (empty: it
-- has none), with FF002 when a site of the batch has been counted on a later day than the batch has
-- for it, with FF003 when such a day has come nowhere yet, and with FF009 as StandbyRequire does,
-- whose answer is returned. Functions are called to tell what is wrong alone: their calls would take
-- most of the time.
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
-- The last day on which each of some sites was counted.
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
-- Decides what each (target, visitor) of the batch is, and writes it down. The first five arrays are
-- one table, a row for each distinct pair, in the order of arrival. hinted means "surely a new
-- visitor": such a one is not looked up, and CountersLock has counted it; where the hint was wrong,
-- an insert fails on the key of visitors or visits. tag_sets are the tags of pairs at sites, each as
-- the text of an array; '': not known, as of pairs at pages. The next four arrays are a table of
-- their own, a row for each target of the batch: its site (0: it is one), the day, and its visits.
-- tags are those of all pairs, as tag_news has them. Returns for each row of the first: its place in the
-- arrays (from 1), the visitor's rank, whether the visitor is new to the target, and whether this
-- visit was its first on the day.
--
-- The statement is planned once, perhaps on empty tables, and has to be right for large ones. So
-- nothing is left to the planner to choose: no two of the tables made here are joined with each
-- other, and counters is updated through its key's conflict. A visitor is looked up row by row, as
-- a range of one address, the first in order: only the primary key has that order. (Where a plain
-- equality is asked of empty tables, the index of ranks costs as much.) Writers forbid themselves
-- other scans.
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
    -- The counters row is the rank sequence: newcomers get the numbers after uv, in the order of
    -- arrival. Those who were hinted are in uv already.
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
    -- The rows are there, and locked. What is inserted has to pass the check on counters before the
    -- conflict is found, so hot is as much as pv there.
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
-- What VisitsRecord does, where all pairs of the batch are hinted. Then CountersLock has counted
-- them, and nothing is left to decide: it takes four fifths of the time. The first five arrays are
-- one table, with tag_sets, a row for each pair, in the order of the keys: the last two columns are the place of
-- its target among the targets (from 1), and how many newcomers came to the target after it. The
-- other five are a table of the targets, in order of id. tags are those of the pairs. Where a hint was
-- wrong, an insert fails on the key of visitors or visits.
--
-- Ranks come out of an array, since a join of the two tables would leave something to the planner.
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
-- Keeps the past days of a batch as they are, and the apps: the arrays are one table. Fails with
-- SQLSTATE FF005 where an app keeps the day no longer, with FF003 where it has come nowhere yet,
-- with FF006 where it is closed, unless late says that the batch is of late visits, and with FF007
-- where somebody else holds an app.
SELECT require_past_days(@apps::integer[], @days::integer[], @late::boolean);

-- name: PastDaysAreLate :one
-- Whether visits of some sites on a day each may be late: because the site has been counted on a
-- later one, or the day is closed. Both arrays are one table.
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
-- What VisitsRecord does, for visits of any days: a row for each distinct pair and day, in the
-- order of arrival, with how many there are of the pair up to it; and targets by day; and the tags
-- of the first. Returns a row for each of these.
SELECT l.place::integer    AS place,
       l.rank::bigint      AS rank,
       l.newcomer::boolean AS newcomer,
       l.counted::boolean  AS counted
FROM record_late_visits(@pages::bigint[], @ips::inet[], @days::integer[], @turns::integer[],
                        @targets::bigint[], @sites::bigint[], @target_days::integer[], @hots::bigint[],
                        @tags::bytea, @tag_sets::text[]) AS l;

-- name: FirstPossibleDay :one
-- The first day of which an app takes visits; 0: any.
SELECT coalesce(first_possible_day(@app_id::integer), 0)::integer AS first_day;

-- name: DaysVisited :exec
-- What is left to be written of a batch in which nobody is to be decided on: its visits, by day.
-- No tags come with them: those are counted with pairs that are decided on.
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
-- How many rows visitors has, by the sums.
SELECT coalesce(sum(uv), 0)::bigint AS visitors
FROM counters;

-- name: ReadInOrder :exec
-- Lets the rest of the transaction follow an index where that gives the order asked for, however
-- much looks cheaper, and take its time.
SELECT set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true),
       set_config('statement_timeout', @timeout::text, true);

-- name: VisitorsAfter :many
-- The next visitors after one, in the order of the key: for reading all of them, some at a time,
-- after ReadInOrder.
SELECT page_id, ip
FROM visitors
WHERE (page_id, ip) > (@page_id::bigint, @ip::inet)
ORDER BY page_id, ip
LIMIT @rows;
