-- The queries of the API and `footfall report` in addition to the panels (panels.sql). Days are numbers like
-- 20190629. A range includes both ends.

-- name: SitesAfter :many
-- The sites of an app, in order of name, after the name @after.
SELECT s.uri AS site, s.pv::bigint AS pv, s.uv::bigint AS uv, s.hot::bigint AS hot, s.counted_pv, s.counted_uv, s.counted_hot, s.since
FROM totals AS s
WHERE s.site_id IS NULL
  AND s.app_id = (SELECT a.id FROM apps AS a WHERE a.name = @app)
  AND s.uri ~>~ @after::text
  AND left(s.uri, 200) ~>=~ left(@after::text, 200)
ORDER BY left(s.uri, 200) USING ~<~, s.uri USING ~<~
LIMIT @n;

-- name: PagesAfter :many
-- The pages of an app, or of one site, in order of uri, after the uri @after, with their numbers in a date range.
-- Pages without visits in the range are included. A page is listed if its path contains @part, in lower case, or its
-- title contains @find.
--   uniques           unique visitors in the date range
--   uniques_before    unique visitors from before_from to before_to; before_to 0: no comparison
--   uniques_compared  unique visitors from from_day to compared_to; compared_to 0: in the whole date range
-- The index only contains the first 200 characters of each uri, so the query also compares and sorts by these
-- characters. targets_sums returns no uniques if the previous visits of some visitors are unknown. Then report.numbers
-- computes the uniques, because the service has no right to read the tables that are needed for this.
WITH listed AS MATERIALIZED (
    SELECT q.id, q.uri
    FROM pages AS q
    WHERE q.app_id = (SELECT a.id FROM apps AS a WHERE a.name = @app)
      AND q.site_id IS NOT NULL
      AND q.uri ~>~ @after::text
      AND q.uri ~>=~ @prefix::text
      AND q.uri ~<~ (@prefix::text || U&'\+10FFFF')
      AND left(q.uri, 200) ~>=~ left(@after::text, 200)
      AND left(q.uri, 200) ~>=~ left(@prefix::text, 200)
      AND left(q.uri, 200) ~<=~ left(@prefix::text || U&'\+10FFFF', 200)
      AND (strpos(lower(substr(q.uri COLLATE "C", length(@prefix::text))), @part) > 0
           OR q.id IN (SELECT h.page_id FROM titles AS h WHERE strpos(lower(h.title), lower(@find::text)) > 0))
    ORDER BY left(q.uri, 200) USING ~<~, q.uri USING ~<~
    LIMIT @n
)
SELECT p.uri,
       coalesce(d.uniques,
                (SELECT u.uniques
                 FROM report.numbers(@app::text, p.uri, @from_day::integer, @to_day::integer) AS u),
                -1)::bigint AS uniques,
       d.new_visitors::bigint AS new_visitors,
       d.pv::bigint           AS pv,
       d.hot::bigint          AS hot,
       coalesce(b.uniques, b.pv, 0)::bigint AS uniques_before,
       coalesce(c.uniques, c.pv, d.uniques, d.pv)::bigint AS uniques_compared,
       p.id                   AS page_id,
       coalesce((SELECT h.title FROM titles AS h WHERE h.page_id = p.id), '')::text AS title
FROM listed AS p
JOIN targets_sums(ARRAY(SELECT l.id FROM listed AS l), @from_day::integer, @to_day::integer) AS d ON d.page_id = p.id
LEFT JOIN targets_sums(ARRAY(SELECT l.id FROM listed AS l WHERE @before_to::integer > 0), @before_from::integer, @before_to::integer) AS b ON b.page_id = p.id
LEFT JOIN targets_sums(ARRAY(SELECT l.id FROM listed AS l WHERE @compared_to::integer > 0 AND @compared_to::integer < @to_day::integer), @from_day::integer, @compared_to::integer) AS c ON c.page_id = p.id
ORDER BY p.uri USING ~<~;

-- name: PagesVisited :one
-- How many pages report.top_pages would return for a site and a date range, at most @n. The query looks for only one
-- day with visits to each page, so that its run time does not depend on the number of days.
SELECT count(*) AS pages
FROM (
    SELECT p.id
    FROM pages AS s
    JOIN pages AS p ON p.site_id = s.id
    CROSS JOIN LATERAL (
        SELECT d.day_id
        FROM days AS d
        WHERE d.page_id = p.id
          AND d.day_id BETWEEN @from_day AND @to_day
          AND CASE WHEN @by::text = 'pv' THEN d.pv WHEN @by::text = 'uv' THEN d.new_visitors ELSE d.hot END > 0
        LIMIT 1
    ) AS v
    WHERE s.app_id = (SELECT a.id FROM apps AS a WHERE a.name = @app)
      AND s.key = page_key(@site::text)
    LIMIT @n
) AS visited;

-- name: TitleOf :one
-- The title of a page; '': unknown.
SELECT coalesce(max(h.title), '')::text AS title
FROM titles AS h
WHERE h.page_id = (SELECT p.id FROM pages AS p JOIN apps AS a ON a.id = p.app_id WHERE a.name = @app AND p.key = page_key(@target::text));

-- name: TagNames :many
-- The names of tags that an app counts, or for which it has values.
SELECT n.name::text AS name, n.has_values::boolean AS has_values
FROM report.tag_names(@app::text) AS n;

-- name: DaysBetween :many
-- The numbers of a page or site, day by day. Days without visits are left out.
SELECT d.day_id AS day, d.pv, d.new_visitors, d.hot
FROM days AS d
WHERE d.page_id = (SELECT p.id FROM pages AS p JOIN apps AS a ON a.id = p.app_id WHERE a.name = @app AND p.key = page_key(@target::text))
  AND d.day_id BETWEEN @from_day AND @to_day
ORDER BY d.day_id
LIMIT @n;

-- name: FirstMinute :one
-- The time of the first visit to a site on a day, in minutes since midnight (-1: unknown). Only the hour of a visit
-- is stored, so the result is a full hour. If the site was created in this hour of this day, the result is the minute
-- of its creation.
SELECT coalesce(60 * f.hour + CASE WHEN date_trunc('hour', s.made) = f.day + f.hour * interval '1 hour' THEN extract(minute FROM s.made) ELSE 0 END,
                -1)::integer AS minute
FROM (
    SELECT p.id, p.created_at AT TIME ZONE a.tz AS made
    FROM pages AS p
    JOIN apps AS a ON a.id = p.app_id
    WHERE a.name = @app
      AND p.key = page_key(@target::text)
) AS s
CROSS JOIN LATERAL (
    SELECT to_date(max(d.day_id)::text, 'YYYYMMDD') AS day, min(t.value::integer) AS hour
    FROM tag_days AS d
    JOIN tags AS t ON t.id = d.tag_id
    WHERE d.page_id = s.id
      AND d.day_id = @day_id
      AND t.name = 'hour'
      AND t.value ~ '^[0-9]+$'
) AS f;

-- name: VisitorsAreKept :one
-- Whether all rows of visits to a page or site on a day are kept, except those of erased visitors.
SELECT NOT EXISTS (
    SELECT
    FROM pages AS p
    JOIN visits_kept AS k ON k.app_id = p.app_id
    JOIN apps AS a ON a.id = p.app_id
    WHERE a.name = @app
      AND p.key = page_key(@target::text)
      AND k.from_day > @day_id::integer
) AS kept;

-- name: VisitorOf :one
-- A visitor of a page or site. If @stored is null, it is the visitor with the rank @rank. erased is true if this
-- visitor was erased. If @stored is not null, @rank is ignored, and it is the visitor who is stored under the first
-- matching address of @stored. No row if no visitor had the rank, or if no address matches.
SELECT r.rank::bigint                    AS rank,
       coalesce(r.visitor, '::')::inet   AS visitor,
       coalesce(r.first_day, 0)::integer AS first_day,
       coalesce(r.last_day, 0)::integer  AS last_day,
       (r.visitor IS NULL)::boolean      AS erased
FROM report.ranks AS r
WHERE @stored::inet[] IS NULL
  AND r.app = @app
  AND r.target = @target
  AND r.rank = @rank
UNION ALL
(SELECT v.rank, v.ip, v.first_day, v.last_day, false
 FROM visitors AS v
 WHERE v.page_id = (SELECT p.id FROM pages AS p JOIN apps AS a ON a.id = p.app_id WHERE a.name = @app AND p.key = page_key(@target::text))
   AND v.ip = ANY (@stored)
 ORDER BY array_position(@stored, v.ip)
 LIMIT 1);

-- name: UniquesOf :one
-- The number of distinct visitors in a date range, and the accuracy of this number. Counts the visitors of one page
-- or site, of several pages and sites, or of all pages whose uri starts with a prefix. If @targets has one page or
-- site that does not exist, there is no row. If it has several, those that do not exist are ignored. Fails if the app
-- does not exist.
SELECT u.uniques::bigint AS uniques, u.exact::boolean AS exact, u.standard_error::double precision AS standard_error, u.erased::bigint AS erased
FROM report.uniques(@app::text, (@targets::text[])[1], @from_day::integer, @to_day::integer) AS u
WHERE cardinality(@targets::text[]) = 1
UNION ALL
SELECT g.uniques::bigint, g.exact::boolean, g.standard_error::double precision, g.erased::bigint
FROM report.uniques(@app::text, @targets::text[], @from_day::integer, @to_day::integer) AS g
WHERE cardinality(@targets::text[]) > 1
UNION ALL
SELECT p.uniques::bigint, p.exact::boolean, p.standard_error::double precision, p.erased::bigint
FROM report.uniques_under(@app::text, @prefix::text, @from_day::integer, @to_day::integer) AS p
WHERE @prefix::text <> '';

-- name: FilterPanels :many
-- The requested parts of a filtered report on a site's visitors, in one pass over their rows. If the part since is
-- requested, it is the last row. If the day in this row is not 0, the other parts are left out, because some data of
-- the visitors is missing before this day. -1 means unknown.
SELECT p.part::text                        AS part,
       coalesce(p.day_id, 0)::integer      AS day,
       coalesce(p.name, '')::text          AS name,
       coalesce(p.value, '')::text         AS value,
       coalesce(p.visitors, -1)::bigint    AS visitors,
       coalesce(p.new_visitors, 0)::bigint AS new_visitors,
       coalesce(p.pv, 0)::bigint           AS pv
FROM filter_panels(@app::text, @target::text, @from_day::integer, @to_day::integer, @conditions::text[], @parts::text[],
                   @names::text[], @period::text, @n::integer, @n::integer) AS p;

-- name: PageFirst :many
-- The page of an app that was counted first, and the time when it was created. No row if the app has no pages. If the
-- app has more than 1,000 pages, the query only looks at any 1,000 of them.
SELECT s.uri, s.created_at AS at
FROM (
    SELECT p.id, p.uri, p.created_at
    FROM pages AS p
    WHERE p.app_id = (SELECT a.id FROM apps AS a WHERE a.name = @app)
      AND p.site_id IS NOT NULL
    LIMIT 1000
) AS s
ORDER BY s.id
LIMIT 1;

-- name: HistorySites :many
-- Sites of an app that were counted by other tools but not here, with their last day and the tool that counted it.
SELECT h.site, max(h.day_id)::integer AS day, (array_agg(i.source ORDER BY h.day_id DESC))[1]::text AS source
FROM apps AS a
JOIN history_days AS h    ON h.app_id = a.id
JOIN history_imports AS i ON i.app_id = h.app_id AND i.id = h.import_id
WHERE a.name = @app
  AND NOT EXISTS (SELECT FROM pages AS p WHERE p.app_id = a.id AND p.key = page_key(h.site))
GROUP BY h.site
ORDER BY h.site
LIMIT @n;

-- name: HistoryDays :many
-- The numbers that other tools have counted for a page or site, on days on which the site was not counted here. -1
-- means unknown.
SELECT h.day_id                               AS day,
       coalesce(h.visitors, -1)::bigint       AS pv,
       coalesce(h.new_visitors, -1)::bigint   AS new_visitors,
       coalesce(h.page_views, -1)::bigint     AS hot,
       coalesce(h.visits, -1)::bigint         AS visits,
       h.source
FROM report.history AS h
WHERE h.app = @app
  AND h.site = split_part(@target::text, '/', 1)
  AND h.target = @target::text
  AND h.day_id BETWEEN @from_day AND @to_day
  AND h.shown
ORDER BY h.day_id
LIMIT @n;
