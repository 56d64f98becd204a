-- Links from visitor ids to persons (table people). The table has rows of the present and of the previous period.
-- When an id is used, its row is copied to the present period (PeopleRenew). When the next period starts, the
-- rows of the previous period are deleted.

-- name: PeopleFind :many
-- Follows the links from each given id to the person, and returns a row for each link, in order of place and hop.
-- Given ids without a row are left out.
--   place   position of the given id in the arrays, from 1
--   hop     number of links before this one (0: the row of the given id itself)
--   person  the id to which the row links; the row of a person links to itself
--   closed  true if the row belongs to the previous period (see the top of this file)
--   tags    the person's tags whose names the app records: name, \x1f, value
-- A row without tags skips the look-up of tags, which would take half as long as the rest of the query.
SELECT f.place::integer     AS place,
       f.hop::integer       AS hop,
       f.id::inet           AS id,
       coalesce(f.person, f.id)::inet           AS person,
       f.height::smallint   AS height,
       coalesce(f.tag_ids, '{}')::integer[]     AS tag_ids,
       f.closed::boolean    AS closed,
       CASE WHEN f.tag_ids IS NULL THEN '{}' ELSE ARRAY(
           SELECT t.name || E'\x1f' || t.value
           FROM tags AS t
           JOIN apps AS a ON a.id = t.app_id AND t.name = ANY (a.tags)
           WHERE t.id = ANY (f.tag_ids)
           ORDER BY t.name
       ) END::text[]        AS tags
FROM find_people(@app_ids::integer[], @ids::inet[]) AS f
ORDER BY place, hop;

-- name: PeopleRenew :exec
-- Copies rows of the previous period into the present one, because their ids are in use. Locks the
-- rows, so that a row that another transaction is erasing is not copied. The values at one index of
-- the arrays are an app and an id.
INSERT INTO people (app_id, period, height, id, person, tag_ids)
SELECT p.app_id, (SELECT people_period()), p.height, p.id, p.person, p.tag_ids
FROM people AS p
WHERE p.period = (SELECT 1 - people_period())
  AND (p.app_id, p.id) IN (SELECT unnest(@app_ids::integer[]), unnest(@ids::inet[]))
ORDER BY p.app_id, p.id
FOR KEY SHARE OF p
ON CONFLICT (period, app_id, id) DO NOTHING;

-- name: PeopleApps :many
-- The apps that have rows in people. Visitors of other apps have no links, so their ids need not be looked up.
-- The subquery reads rows in key order, because otherwise it might read all rows of people.
SELECT a.id
FROM apps AS a
WHERE a.visitor = 'id'
  AND (SELECT true FROM people AS p WHERE p.period IN (0, 1) AND p.app_id = a.id ORDER BY p.period, p.app_id, p.id LIMIT 1);

-- name: PeopleRotate :one
-- Starts a new period of people if the present one has ended. Returns whether a new period was
-- started.
SELECT turn_people()::boolean AS turned;

-- name: PeopleLock :exec
-- Locks an app's people for writing or erasing. Runs before the transaction reads the rows.
SELECT lock_people(@app_id::integer);

-- name: PeoplePut :exec
-- Writes rows of an app's people in the present period, in key order, after PeopleLock. The values at
-- one index of the arrays belong to one row. For a person, id and person are equal. tags has the tag
-- ids of each row, as the text of an array ('': none).
INSERT INTO people AS p (app_id, period, height, id, person, tag_ids)
SELECT @app_id, (SELECT people_period()), r.height, r.id, nullif(r.person, r.id), nullif(r.tags, '')::integer[]
FROM (
    SELECT unnest(@heights::smallint[]) AS height,
           unnest(@ids::inet[])         AS id,
           unnest(@persons::inet[])     AS person,
           unnest(@tags::text[])        AS tags
) AS r
ORDER BY r.id
ON CONFLICT (period, app_id, id) DO UPDATE
    SET height  = excluded.height,
        person  = excluded.person,
        tag_ids = excluded.tag_ids
    WHERE (p.height, p.person, p.tag_ids) IS DISTINCT FROM (excluded.height, excluded.person, excluded.tag_ids);

-- name: PeopleLeading :many
-- The ids of an app that link directly to the given ids. A row of the previous period is ignored if its id has a
-- row in the present period. The height of an id is the length of the longest chain of links that leads to it.
-- All ids with a height above 0 are returned, because other ids link to them. Ids with the height 0 have the same
-- effect. So for each given id, only one of them is returned that is not in @there. Reads all people of the app.
SELECT min(p.id)::inet     AS id,
       p.person::inet      AS person,
       p.height::smallint  AS height
FROM people AS p
WHERE p.app_id = @app_id
  AND p.person = ANY (@ids::inet[])
  AND (p.height > 0 OR p.id <> ALL (@there::inet[]))
  AND NOT EXISTS (SELECT FROM people AS o WHERE o.period = people_period() AND p.period <> o.period AND o.app_id = p.app_id AND o.id = p.id)
GROUP BY p.person, p.height, CASE WHEN p.height > 0 THEN p.id END;

-- name: PeopleHold :exec
-- Locks rows of the previous period, so that PeopleRenew cannot copy them until the transaction ends.
-- Locks them in the same order as PeopleRenew.
SELECT
FROM people AS p
WHERE p.period = (SELECT 1 - people_period())
  AND p.app_id = @app_id
  AND p.id = ANY (@ids::inet[])
ORDER BY p.id
FOR UPDATE;

-- name: PeopleLower :exec
-- Lowers the heights of rows in both periods. Does not copy rows of the previous period to the present
-- one: a link from another id does not count as a use of an id. The values at one index of the arrays
-- are an id and its height.
UPDATE people AS p
SET height = r.height
FROM (
    SELECT unnest(@ids::inet[])         AS id,
           unnest(@heights::smallint[]) AS height
) AS r
WHERE p.period IN (0, 1)
  AND p.app_id = @app_id
  AND p.id = r.id
  AND p.height > r.height;
