-- Ids of visitors that lead to one person (table people).

-- name: PeopleFind :many
-- The rows through which some ids lead to persons: each with the id's place in the arrays (from 1)
-- and the step (0: its own row), what it leads to (itself, where it is a person), and whether it is of
-- the period before. Ids without a row are left out. tags are the person's, as far as the app counts
-- their names: name, \x1f, value. (To look for those of rows that have none would cost half as much as
-- the ways.) In the order of place and step.
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
-- Copies some rows of the period before into the present one: their ids are used. They are locked,
-- so that none comes back that is erased meanwhile. The arrays are one table.
INSERT INTO people (app_id, period, height, id, person, tag_ids)
SELECT p.app_id, (SELECT people_period()), p.height, p.id, p.person, p.tag_ids
FROM people AS p
WHERE p.period = (SELECT 1 - people_period())
  AND (p.app_id, p.id) IN (SELECT unnest(@app_ids::integer[]), unnest(@ids::inet[]))
ORDER BY p.app_id, p.id
FOR KEY SHARE OF p
ON CONFLICT (period, app_id, id) DO NOTHING;

-- name: PeopleApps :many
-- The apps that have people: visits of others need not be resolved. In the order of the key, or all
-- rows of people might be read for it.
SELECT a.id
FROM apps AS a
WHERE a.visitor = 'id'
  AND (SELECT true FROM people AS p WHERE p.period IN (0, 1) AND p.app_id = a.id ORDER BY p.period, p.app_id, p.id LIMIT 1);

-- name: PeopleRotate :one
-- Begins a new period if it is time; whether it did.
SELECT turn_people()::boolean AS turned;

-- name: PeopleLock :exec
-- Lets one at a time write an app's people, or erase some; it comes before what that reads.
SELECT lock_people(@app_id::integer);

-- name: PeoplePut :exec
-- Writes rows of an app's people in the present period, in the order of their key, after PeopleLock.
-- The arrays are one table: a person leads to itself; tags are texts of arrays of their numbers ('':
-- none).
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
-- Who leads to some ids of an app, a step away, by the rows that hold: all to whom anybody may lead
-- in turn, and of others one for each id, that is not among those that are there already. It reads
-- all people of the app.
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
-- Lets nobody copy rows of the period before until the transaction ends; in the order in which
-- PeopleRenew locks them.
SELECT
FROM people AS p
WHERE p.period = (SELECT 1 - people_period())
  AND p.app_id = @app_id
  AND p.id = ANY (@ids::inet[])
ORDER BY p.id
FOR UPDATE;

-- name: PeopleLower :exec
-- Lowers the heights of rows, in whichever period they are: to be led to is no use of an id. The
-- arrays are one table.
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
