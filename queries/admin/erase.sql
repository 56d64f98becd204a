-- Erasing visitors, pages and apps. Commands that erase take turns (EraseTurn), so that two of them
-- cannot deadlock.

-- name: EraseTurn :exec
-- Locks the row erasures of the table epochs: waits for other erasures, and blocks later ones until this transaction
-- ends. Every erasure updates this row at some point. Without this statement, the erasure would wait for the row while
-- it already holds locks on sites. This statement is separate from EraseBegin, so that the settings of EraseBegin
-- apply while it waits.
SELECT value
FROM epochs
WHERE name = 'erasures'
FOR UPDATE;

-- name: AppDaysHold :exec
-- Waits for running batches with late visits (visits of past days) to an app, and makes later ones wait until the
-- transaction ends. In the meantime, no visit can count on a day before the last counted day of its site.
SELECT hold_app_days(@app_id::integer);

-- name: VisitorTargets :many
-- The pages and sites of an app where a visitor was counted under any of these addresses. Each row has the visitor's
-- rank, first day and last day there. Looks up one page or site at a time by the key, because a join would read the
-- visitors of all apps.
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
-- The sites of an app, each with the number of its pages plus one for the site itself.
SELECT coalesce(p.site_id, p.id)::bigint AS id, count(*) AS targets
FROM pages AS p
WHERE p.app_id = @app_id
GROUP BY coalesce(p.site_id, p.id)
ORDER BY id;

-- name: SiteDays :many
-- The days of an app's sites that may still have visit rows.
SELECT d.page_id AS site, d.day_id AS day
FROM pages AS p
JOIN days AS d ON d.page_id = p.id
WHERE p.app_id = @app_id
  AND p.site_id IS NULL
  AND d.day_id >= coalesce((SELECT k.from_day FROM visits_kept AS k WHERE k.app_id = @app_id), 0)
ORDER BY d.day_id, d.page_id;

-- name: VisitTagsEmpty :execrows
-- Removes the tags from at most @most visit rows of a site on a day.
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

-- name: PersonIDs :many
-- Finds ids that belong to the same persons as the given ids. A row of the table people links an id to another id, or
-- represents a person. The query returns both ids of each link from or to a given id, and given ids that represent a
-- person. It ignores a row of the previous period if its id has a row in the present period. The caller repeats the
-- query with the returned ids until no id is new, and then has all ids of the persons. Reads all people of the app.
SELECT DISTINCT unnest(ARRAY[p.id, coalesce(p.person, p.id)])::inet AS id
FROM people AS p
WHERE p.app_id = @app_id
  AND (p.id = ANY (@ids::inet[]) OR p.person = ANY (@ids))
  AND NOT EXISTS (SELECT FROM people AS o WHERE o.period = people_period() AND p.period <> o.period AND o.app_id = p.app_id AND o.id = p.id);

-- name: PersonTags :many
-- Follows the links from an id of a visitor to the person, with a row for each step:
--   step    the number of steps before this one
--   person  the id to which this step leads; in the last row, it represents the person
--   tags    all stored tags of the id where this step starts, including tags that the app does not count
SELECT f.hop::integer AS step, coalesce(f.person, f.id)::inet AS person,
       ARRAY(SELECT t.name || ' ' || t.value FROM tags AS t WHERE t.id = ANY (f.tag_ids) ORDER BY t.name)::text[] AS tags
FROM find_people(ARRAY[@app_id::integer], ARRAY[@id::inet]) AS f
ORDER BY step;

-- name: VisitorErase :one
-- Removes a visitor's addresses from some sites and their pages. Returns the number of deleted rows of visitors:
-- there is one for each address at each page or site.
SELECT erase_visitor(@app_id, @sites::bigint[], @ips::inet[])::bigint AS targets;

-- name: PeopleErase :exec
-- Deletes the rows of these ids in people, and the rows that link other ids to these ids.
SELECT erase_people(@app_id, @ids::inet[]);

-- name: PageHide :one
-- Renames a page, so that no visit finds it any more. Returns false if the page does not exist.
SELECT hide_page(@app_id, @site, @uri)::boolean AS hidden;

-- name: HiddenPagesMerge :exec
-- Adds the numbers of hidden pages to the pages (deleted) of their sites.
SELECT merge_hidden_pages(@app_id);

-- name: AppCountersTake :exec
-- Locks the counters of all pages and sites of an app.
SELECT take_counters(@app_id);

-- name: AppPeopleDelete :exec
-- Deletes an app's rows in the table people.
SELECT delete_app_people(@app_id);

-- name: AppRowsDelete :exec
-- Deletes an app's rows in the largest tables.
SELECT delete_app_rows(@app_id);

-- name: AppRestDelete :exec
-- Deletes all remaining rows of an app, except its row in apps and the rights of accounts.
SELECT delete_app_rest(@app_id);

-- name: AppClose :exec
-- Marks an app as being deleted, so that instances stop counting for it.
UPDATE apps
SET deleted_at = coalesce(deleted_at, now())
WHERE id = @id;

-- name: TitlesDelete :exec
-- Deletes the titles of an app's pages.
DELETE FROM titles AS t
USING pages AS p
WHERE p.id = t.page_id
  AND p.app_id = @app_id;

-- name: AppDelete :exec
-- Deletes the row of an app in apps. All other rows of the app are already deleted, except the
-- rights of accounts.
DELETE FROM apps
WHERE id = @id;

-- name: DayKeysList :many
-- The keys for hashing visitors, of all days whose key is not deleted yet.
SELECT day_id, key
FROM day_keys
ORDER BY day_id;
