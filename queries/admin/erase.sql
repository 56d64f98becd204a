-- Erasing: visitors, pages, apps. A command that erases takes its turn first, so that no two wait
-- for each other.
--
-- Each visit locks the counters of its site, so that a transaction which holds those has the site
-- to itself: no batch is between its look-up and its insert. Batches that wait for the lock meet a
-- new basis, and forget what was erased.

-- name: EraseTurn :exec
-- Waits until nobody else erases; the transaction's end lets go. The row is the one that every
-- erasure raises, which would else be waited for while sites are held. A statement of its own,
-- after EraseBegin, whose time begins with it.
SELECT value
FROM epochs
WHERE name = 'erasures'
FOR UPDATE;

-- name: AppDaysHold :exec
-- Keeps visits of past days to an app waiting, until the end of the transaction: no other
-- visit counts on a day before the last one of its site.
SELECT hold_app_days(@app_id::integer);

-- name: VisitorTargets :many
-- The targets of an app at which a visitor is known, under any of their addresses, and since when.
-- Target by target, by the key: a join would read the visitors of all apps.
SELECT p.uri, v.ip, v.rank, v.first_day, v.last_day
FROM pages AS p
CROSS JOIN LATERAL (
    SELECT w.ip, w.rank, w.first_day, w.last_day
    FROM visitors AS w
    WHERE w.page_id = p.id
      AND w.ip = ANY (@ips::inet[])
    OFFSET 0
) AS v
WHERE p.app_id = @app_id
ORDER BY p.uri, v.ip;

-- name: AppSites :many
-- The sites of an app, and how many targets each is, with its pages.
SELECT coalesce(p.site_id, p.id)::bigint AS id, count(*) AS targets
FROM pages AS p
WHERE p.app_id = @app_id
GROUP BY coalesce(p.site_id, p.id)
ORDER BY id;

-- name: SiteDays :many
-- The days of an app's sites whose rows of visits may be kept.
SELECT d.page_id AS site, d.day_id AS day
FROM pages AS p
JOIN days AS d ON d.page_id = p.id
WHERE p.app_id = @app_id
  AND p.site_id IS NULL
  AND d.day_id >= coalesce((SELECT k.from_day FROM visits_kept AS k WHERE k.app_id = @app_id), 0)
ORDER BY d.day_id, d.page_id;

-- name: VisitTagsEmpty :execrows
-- Takes the tags out of some rows of a site on a day.
UPDATE visits AS v
SET tags = NULL
WHERE v.page_id = @site
  AND v.day_id = @day
  AND v.ip = ANY (ARRAY(
      SELECT s.ip
      FROM visits AS s
      WHERE s.page_id = @site
        AND s.day_id = @day
        AND s.tags IS NOT NULL
      LIMIT @most
  ));

-- name: VisitorTargetsAt :many
-- Those that are of some sites, and the last day on which each one's site was counted.
SELECT p.id, coalesce(p.site_id, p.id)::bigint AS site_id, v.first_day, v.last_day,
       coalesce((SELECT max(d.day_id) FROM days AS d WHERE d.page_id = coalesce(p.site_id, p.id)), 0)::integer AS site_day
FROM pages AS p
CROSS JOIN LATERAL (
    SELECT w.first_day, w.last_day
    FROM visitors AS w
    WHERE w.page_id = p.id
      AND w.ip = ANY (@ips::inet[])
    OFFSET 0
) AS v
WHERE p.id = ANY (@sites::bigint[])
   OR p.site_id = ANY (@sites);

-- name: EraseByKey :exec
-- Lets the rest of the transaction find rows by keys alone, however much cheaper the planner takes
-- reading a table for: visits wait meanwhile.
SELECT set_config('enable_seqscan', 'off', true),
       set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true);

-- name: OldestUnseen :one
-- The oldest transaction, by its number, of which a statement asked from now on may see what no
-- statement before could: the oldest one under way beside this one, or the next that will begin.
SELECT coalesce(min(x.id), max(s.next))::bigint AS transaction
FROM (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next) AS s
LEFT JOIN (SELECT pg_snapshot_xip(pg_current_snapshot())::text::bigint AS id) AS x ON x.id <> pg_current_xact_id()::text::bigint;

-- name: VisitorPagesSince :many
-- The pages of some sites at which a visitor is known, of those that were counted on a day of their
-- site or later, and by no transaction older than one. Every batch writes the day's row of its
-- pages, and a row tells who wrote it last: age() is how many transactions ago that was. The first
-- two arrays are one table.
SELECT counted.page_id
FROM (
    SELECT DISTINCT d.page_id
    FROM (SELECT unnest(@sites::bigint[]) AS site_id, unnest(@from_days::integer[]) AS from_day) AS s
    JOIN days AS d ON d.site_id = s.site_id AND d.day_id >= s.from_day
    WHERE age(d.xmin) <= (SELECT pg_current_xact_id()::text::bigint + age(pg_current_xact_id()::xid) - @oldest_unseen::bigint)
) AS counted
CROSS JOIN LATERAL (
    SELECT
    FROM visitors AS w
    WHERE w.page_id = counted.page_id
      AND w.ip = ANY (@ips::inet[])
    LIMIT 1
) AS v;

-- name: VisitorKeep :exec
-- Locks what VisitorErase will delete, with the lock of somebody who wants rows to stay: no visit
-- waits for that. After it their blocks are in memory, and in the WAL.
SELECT
FROM visitors AS v
WHERE v.page_id = ANY (@pages::bigint[])
  AND v.ip = ANY (@ips::inet[])
FOR KEY SHARE;

-- name: VisitsKeep :exec
-- Locks likewise what VisitsErase will.
SELECT
FROM visits AS v
WHERE v.day_id = ANY (@days::integer[])
  AND v.page_id = ANY (@pages::bigint[])
  AND v.ip = ANY (@ips::inet[])
FOR KEY SHARE;

-- name: SitesDaysSince :many
-- The days on which any of some sites was counted, for each from a day on. Both arrays are one
-- table.
SELECT DISTINCT d.day_id
FROM (SELECT unnest(@sites::bigint[]) AS site_id, unnest(@from_days::integer[]) AS from_day) AS s
JOIN days AS d ON d.page_id = s.site_id AND d.day_id >= s.from_day
ORDER BY d.day_id;

-- name: CountersHold :exec
-- Locks the counters of some targets, in the order in which every batch does.
SELECT page_id
FROM counters
WHERE page_id = ANY (@pages::bigint[])
ORDER BY page_id
FOR UPDATE;

-- name: VisitorErase :one
-- Takes the addresses of a visitor out of some targets; their ranks stay taken. Returns how many.
WITH gone AS (
    DELETE FROM visitors AS v
    WHERE v.page_id = ANY (@pages::bigint[])
      AND v.ip = ANY (@ips::inet[])
    RETURNING v.page_id, v.rank
)
SELECT erase_ranks(array_agg(g.page_id), array_agg(g.rank))::bigint AS erased
FROM gone AS g;

-- name: VisitsErase :exec
-- Takes them out of the visits of one day, which stays counted. A day at a time: so each row is
-- found by the whole key.
WITH gone AS (
    DELETE FROM visits AS v
    WHERE v.day_id = @day
      AND v.page_id = ANY (@pages::bigint[])
      AND v.ip = ANY (@ips::inet[])
    RETURNING v.page_id, v.day_id, v.previous_day
)
INSERT INTO erased_visits AS e (page_id, day_id, previous_day, visitors)
SELECT g.page_id, g.day_id, g.previous_day, count(*)
FROM gone AS g
GROUP BY g.page_id, g.day_id, g.previous_day
ON CONFLICT (page_id, day_id, previous_day) DO UPDATE
    SET visitors = e.visitors + excluded.visitors;

-- name: PersonIDs :many
-- Those of some ids of an app that have rows of people, and the ids that are a step away from one of
-- them, to it or from it, by the rows that hold. Asked until no more come, it has all ids of the
-- persons. It reads all people of the app.
SELECT DISTINCT unnest(ARRAY[p.id, coalesce(p.person, p.id)])::inet AS id
FROM people AS p
WHERE p.app_id = @app_id
  AND (p.id = ANY (@ids::inet[]) OR p.person = ANY (@ids))
  AND NOT EXISTS (SELECT FROM people AS o WHERE o.period = people_period() AND p.period <> o.period AND o.app_id = p.app_id AND o.id = p.id);

-- name: PersonTags :many
-- To whom an id of an app leads step by step, the person last, and all tags that are stored of them,
-- whichever the app counts.
SELECT f.hop::integer AS step, coalesce(f.person, f.id)::inet AS person,
       ARRAY(SELECT t.name || ' ' || t.value FROM tags AS t WHERE t.id = ANY (f.tag_ids) ORDER BY t.name)::text[] AS tags
FROM find_people(ARRAY[@app_id::integer], ARRAY[@id::inet]) AS f
ORDER BY step;

-- name: PeopleErase :exec
-- Deletes the rows of some ids in the present period, or in the one before, with those that led to
-- them before others took their place. They are locked in the order in which PeopleRenew does so.
WITH going AS MATERIALIZED (
    SELECT p.period, p.id
    FROM people AS p
    WHERE p.period = CASE WHEN @closed::boolean THEN 1 - people_period() ELSE people_period() END
      AND p.app_id = @app_id
      AND (p.id = ANY (@ids::inet[]) OR p.person = ANY (@ids))
    ORDER BY p.id
    FOR UPDATE
)
DELETE FROM people AS p
USING going AS g
WHERE p.period = g.period
  AND p.app_id = @app_id
  AND p.id = g.id;

-- name: PageGet :one
-- A target of an app by its uri.
SELECT id, site_id
FROM pages
WHERE app_id = @app_id
  AND key = page_key(@uri);

-- name: PageRename :exec
-- Gives a page another uri. Running instances forget what they remember (trigger pages_erased).
UPDATE pages
SET uri = @uri
WHERE id = @id;

-- name: PagesRenamed :many
-- The pages of an app that were taken off their uri to be deleted, and still are there.
SELECT p.id, s.id AS site_id, s.uri AS site
FROM pages AS p
JOIN pages AS s ON s.id = p.site_id
WHERE p.app_id = @app_id
  AND p.uri = s.uri || '/(deleted) ' || p.id;

-- name: CountersMake :exec
-- Makes the counters of a target that has none.
INSERT INTO counters (page_id)
VALUES (@page_id)
ON CONFLICT (page_id) DO NOTHING;

-- Those who were erased cannot be told apart, so how many of them came to both of two pages is not
-- known: as many as can be are taken for somebody else each. All came to the site, which bounds
-- them: by its erased visitors of each day, and in all. And each came on some day, so that there
-- are no more visitors than (visitor, day) pairs.

-- name: AppKeptFrom :one
-- From which day on the visits of an app are all there. In the turn of a command that
-- erases it stays so until that is done.
SELECT coalesce(max(from_day), 0)::integer AS from_day
FROM visits_kept
WHERE app_id = @app_id;

-- name: VisitsMerge :exec
-- Moves the visits of one page of a site to another one, where nobody counts. When their visitors
-- came before is not told of sums any more. What is kept no longer goes: the command that deletes
-- it may have passed the other page.
WITH gone AS (
    DELETE FROM visits AS v
    WHERE v.page_id = @from_page
    RETURNING v.day_id, v.ip
), moved AS (
    INSERT INTO visits (page_id, day_id, previous_day, ip)
    SELECT @into_page, g.day_id, 0, g.ip
    FROM gone AS g
    WHERE g.day_id >= @kept_from::integer
    ON CONFLICT DO NOTHING
), gone_erased AS (
    DELETE FROM erased_visits AS e
    WHERE e.page_id = @from_page
    RETURNING e.day_id, e.visitors
)
INSERT INTO erased_visits AS i (page_id, day_id, previous_day, visitors)
SELECT @into_page, g.day_id, 0, sum(g.visitors)
FROM gone_erased AS g
GROUP BY g.day_id
ON CONFLICT (page_id, day_id, previous_day) DO UPDATE
    SET visitors = least(i.visitors + excluded.visitors,
                         (SELECT sum(s.visitors) FROM erased_visits AS s WHERE s.page_id = @site AND s.day_id = i.day_id));

-- name: DaysMerge :one
-- Moves its days, after the visits, and returns how many (visitor, day) pairs are new there. Where
-- the rows of a day are kept its visitors are counted by them. Where they are gone nobody can tell
-- who came to both pages: each is taken for somebody else, as long as the site had so many. Who
-- among them was new, or returned, is not told of sums any more.
WITH gone AS (
    DELETE FROM days AS d
    WHERE d.page_id = @from_page
    RETURNING d.site_id, d.day_id, d.hot, d.pv
), gone_returns AS (
    DELETE FROM open_returns AS r
    WHERE r.page_id IN (@from_page, @into_page)
), gone_packed AS (
    DELETE FROM packed_returns AS r
    WHERE r.page_id IN (@from_page, @into_page)
), were AS MATERIALIZED (
    SELECT g.site_id, g.day_id, g.hot,
           coalesce(i.pv, 0) AS before,
           CASE
               WHEN g.day_id >= @kept_from::integer
               THEN (SELECT count(*) FROM visits AS v WHERE v.page_id = @into_page AND v.day_id = g.day_id)
                        + coalesce((SELECT sum(e.visitors) FROM erased_visits AS e WHERE e.page_id = @into_page AND e.day_id = g.day_id), 0)
               ELSE least(coalesce(i.pv, 0) + g.pv, s.pv)
           END AS pv
    FROM gone AS g
    JOIN days AS s      ON s.page_id = @site AND s.day_id = g.day_id
    LEFT JOIN days AS i ON i.page_id = @into_page AND i.day_id = g.day_id
), moved AS (
    INSERT INTO days AS i (page_id, site_id, day_id, hot, pv, new_visitors)
    SELECT @into_page, w.site_id, w.day_id, w.hot + w.before, w.pv, 0
    FROM were AS w
    ON CONFLICT (page_id, day_id) DO UPDATE
        SET hot = i.hot + excluded.hot - (SELECT w.before FROM were AS w WHERE w.day_id = excluded.day_id),
            pv  = excluded.pv
)
SELECT coalesce(sum(w.pv - w.before), 0)::bigint AS days
FROM were AS w;

-- name: VisitorsMerge :one
-- Moves its visitors, after the days, and returns how many are new there. A visitor who came to
-- both stays one; one who is new gets the next rank, in the order of the ranks before. There are
-- never more visitors than (visitor, day) pairs: where erased ones were taken for more than they
-- can have been, newcomers take their places.
WITH gone_erased AS (
    DELETE FROM erased_visitors AS e
    WHERE e.page_id IN (@from_page, @into_page)
    RETURNING e.page_id, e.part, e.place, e.places
), erased AS MATERIALIZED (
    SELECT g.page_id, r.rank
    FROM gone_erased AS g
    CROSS JOIN LATERAL unpack_ranks(g.part, g.place, g.places) AS r (rank)
), page AS MATERIALIZED (
    SELECT c.page_id, c.uv, c.pv - c.uv + @days::bigint AS room,
           (SELECT count(*) FROM erased AS e WHERE e.page_id = @into_page) AS erased,
           (SELECT count(*) FROM erased_ranks AS e WHERE e.page_id = @site) AS erased_at_site
    FROM counters AS c
    WHERE c.page_id = @into_page
), gone AS (
    DELETE FROM visitors AS v
    WHERE v.page_id = @from_page
    RETURNING v.ip, v.rank, v.first_day, v.last_day
), fresh AS MATERIALIZED (
    SELECT g.ip, g.first_day, g.last_day, row_number() OVER (ORDER BY g.rank) AS place
    FROM gone AS g
    WHERE NOT EXISTS (SELECT FROM visitors AS v WHERE v.page_id = @into_page AND v.ip = g.ip)
), freed AS MATERIALIZED (
    SELECT s.rank, row_number() OVER (ORDER BY s.rank) AS place
    FROM (
        SELECT e.rank
        FROM erased AS e
        WHERE e.page_id = @into_page
        ORDER BY e.rank DESC
        LIMIT greatest(0, (SELECT count(*) FROM fresh) - (SELECT page.room FROM page))
    ) AS s
), newcomers AS (
    INSERT INTO visitors (page_id, ip, rank, first_day, last_day)
    SELECT page.page_id, n.ip,
           coalesce((SELECT f.rank FROM freed AS f WHERE f.place = n.place), page.uv + n.place - (SELECT count(*) FROM freed)),
           n.first_day, n.last_day
    FROM fresh AS n
    CROSS JOIN page
), known AS (
    UPDATE visitors AS v
    SET first_day = least(v.first_day, g.first_day),
        last_day  = greatest(v.last_day, g.last_day)
    FROM gone AS g
    WHERE v.page_id = @into_page
      AND v.ip = g.ip
), added AS MATERIALIZED (
    SELECT (SELECT count(*) FROM fresh) - (SELECT count(*) FROM freed) AS visitors
), still_erased AS (
    SELECT e.rank
    FROM erased AS e
    WHERE e.page_id = @into_page
      AND e.rank NOT IN (SELECT f.rank FROM freed AS f)
    UNION ALL
    SELECT page.uv + added.visitors + g.place
    FROM (SELECT row_number() OVER () AS place FROM erased AS e WHERE e.page_id = @from_page) AS g
    CROSS JOIN page
    CROSS JOIN added
    WHERE g.place <= least(page.erased_at_site - page.erased, page.room - added.visitors)
)
SELECT ((SELECT count(*) FROM fresh) - (SELECT page.erased FROM page)
            + erase_ranks(array_agg(@into_page::bigint), array_agg(s.rank)))::bigint AS visitors
FROM still_erased AS s;

-- name: SketchesMerge :exec
-- Moves its sketches.
SELECT merge_sketches(@from_page, @into_page);

-- name: TopsDelete :exec
-- Forgets which pages of a site, and of all of its app, were first; that is found again from its
-- days.
DELETE FROM tops AS t
USING pages AS s
WHERE s.id = @site
  AND t.app_id = s.app_id
  AND t.site_id IN (0, s.id);

-- name: CountersMerge :exec
-- Moves the sums, after the rows that prove them: a batch that still knows the page by its old name
-- may want its counters, and must not wait for those.
WITH gone AS (
    DELETE FROM counters AS c
    WHERE c.page_id = @from_page
    RETURNING c.hot
)
UPDATE counters AS c
SET hot = c.hot + g.hot,
    pv  = c.pv + @days,
    uv  = c.uv + @visitors
FROM gone AS g
WHERE c.page_id = @into_page;

-- name: PageDrop :exec
-- Removes a page of which nothing is counted any more, and its tags: nobody can tell which of its
-- visitors are counted for another page already.
WITH untagged AS (
    DELETE FROM tag_days AS t
    WHERE t.page_id = @id
)
DELETE FROM pages
WHERE id = @id;

-- name: AppClose :exec
-- Lets an app count nothing any more.
UPDATE apps
SET deleted_at = coalesce(deleted_at, now())
WHERE id = @id;

-- name: AppPositionsDelete :exec
-- Deletes how far an app's sources were counted. Before its counters are locked: a batch that holds
-- a position may want them. Refused messages go behind it: no batch writes any more of them then.
WITH imported AS (
    DELETE FROM logs AS l
    WHERE l.app_id = @app_id
)
DELETE FROM positions AS p
WHERE p.app_id = @app_id;

-- name: AppCountersTake :exec
-- Locks the counters of all targets of an app, and makes those that are missing, or waits for the
-- batch that is making them. Target by target, in the order in which every batch does: who made all
-- first and locked them then would keep a batch from a late one, and wait for an early one that it
-- holds.
INSERT INTO counters AS c (page_id)
SELECT id
FROM pages
WHERE app_id = @app_id
ORDER BY id
ON CONFLICT (page_id) DO UPDATE
    SET hot = c.hot;

-- name: TitlesDelete :exec
-- Deletes the titles of an app's pages.
DELETE FROM titles AS t
USING pages AS p
WHERE p.id = t.page_id
  AND p.app_id = @app_id;

-- name: HereErase :exec
-- Forgets who came of late with a visitor to some sites.
DELETE FROM here AS h
WHERE h.site_id = ANY (@sites::bigint[])
  AND h.visitors && @ips::inet[];

-- name: AppRowsDelete :exec
-- Deletes what an app has most rows of: visits and their ids, visitors, sketches, history. For good once its
-- counters are locked: then no batch writes any more of them.
WITH targets AS (
    SELECT p.id
    FROM pages AS p
    WHERE p.app_id = @app_id
), ids AS (
    DELETE FROM visit_ids AS v
    WHERE v.app_id = @app_id
), visited AS (
    DELETE FROM visits
    WHERE page_id IN (SELECT t.id FROM targets AS t)
), sketched AS (
    DELETE FROM sketches
    WHERE page_id IN (SELECT t.id FROM targets AS t)
), present AS (
    DELETE FROM here
    WHERE site_id IN (SELECT t.id FROM targets AS t)
), imported AS (
    DELETE FROM history_imports AS i
    WHERE i.app_id = @app_id
)
DELETE FROM visitors
WHERE page_id IN (SELECT t.id FROM targets AS t);

-- name: AppTargetsDelete :exec
-- Deletes the targets of an app, whose counters AppCountersTake has locked, and all that is left of
-- them. In one statement, since pages and sites refer to each other.
WITH targets AS (
    SELECT p.id
    FROM pages AS p
    WHERE p.app_id = @app_id
), erased AS (
    DELETE FROM erased_visitors
    WHERE page_id IN (SELECT t.id FROM targets AS t)
), erased_days AS (
    DELETE FROM erased_visits
    WHERE page_id IN (SELECT t.id FROM targets AS t)
), dated AS (
    DELETE FROM days
    WHERE page_id IN (SELECT t.id FROM targets AS t)
), returned AS (
    DELETE FROM open_returns
    WHERE page_id IN (SELECT t.id FROM targets AS t)
), packed AS (
    DELETE FROM packed_returns
    WHERE page_id IN (SELECT t.id FROM targets AS t)
), tagged AS (
    DELETE FROM tag_days
    WHERE page_id IN (SELECT t.id FROM targets AS t)
), counted AS (
    DELETE FROM counters
    WHERE page_id IN (SELECT t.id FROM targets AS t)
)
DELETE FROM pages AS p
WHERE p.app_id = @app_id;

-- name: AppPeopleDelete :exec
-- Deletes an app's people; twice, since an instance that has not heard of it may copy rows of the
-- period before at this moment.
DELETE FROM people
WHERE app_id = @app_id;

-- name: AppOffsetsDelete :exec
-- Deletes the offsets of an app. A statement of its own, which comes before AppDelete: all who change
-- offsets raise their epoch first, and then that of apps.
DELETE FROM offsets
WHERE app_id = @app_id;

-- name: AppRestDelete :exec
-- Deletes what is known of an app of which nothing is counted any more: its tags, lists of top pages,
-- from when on its visits are kept and whether that is paused, how many pages it got today, keys, links,
-- webhooks and notes, revoked ones included.
WITH named AS (
    DELETE FROM tags WHERE app_id = @id
), listed AS (
    DELETE FROM tops WHERE app_id = @id
), kept AS (
    DELETE FROM visits_kept WHERE app_id = @id
), paused AS (
    DELETE FROM retention_pauses WHERE app_id = @id
), tallied AS (
    DELETE FROM page_tallies WHERE app_id = @id
), opened AS (
    DELETE FROM keys WHERE app_id = @id
), linked AS (
    DELETE FROM shares WHERE app_id = @id
), called AS (
    DELETE FROM webhooks WHERE app_id = @id
)
DELETE FROM notes AS n
WHERE n.app_id = @id;

-- name: AppDelete :exec
-- Deletes an app of which nothing else is left, and the rights of accounts.
DELETE FROM apps
WHERE id = @id;

-- name: TagsHold :exec
-- Keeps tag_days as it is until the transaction ends, for whoever deletes from it.
SELECT pg_advisory_xact_lock(hashtext('footfall.fold_tags'));

-- name: DayKeysList :many
-- The keys of all days that still have one.
SELECT day_id, key
FROM day_keys
ORDER BY day_id;
