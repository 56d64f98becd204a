-- The dashboard's queries, with a statement for each panel. Users can see each statement with its values, and run it
-- themselves. Days are numbers like 20190629. A range includes both ends. The compared days are the first days of a
-- range, up to compared_to. The previous period has the days that are days_before days before the compared days.

-- name: PanelApps :many
-- The overview of apps: the number of sites, the page views of today and of each of the last 30 days, and the first
-- counted day. Page views and days are those of the app's 200 busiest sites.
SELECT t.app::text              AS app,
       t.tz::text               AS tz,
       t.sites::bigint          AS sites,
       t.today::bigint          AS today,
       t.last_30_days::bigint[] AS last_30_days,
       t.first_day::integer     AS first_day
FROM report.apps_today(@apps::text[]) AS t;

-- name: PanelSites :many
-- The sites of an app in a date range. Each site also has its unique visitors (uniques) in the compared days of the
-- range and in the previous period.
SELECT s.site::text               AS site,
       s.today::bigint            AS today,
       s.uniques::bigint          AS uniques,
       s.new_visitors::bigint     AS new_visitors,
       s.pv::bigint               AS pv,
       s.hot::bigint              AS hot,
       s.uniques_before::bigint   AS uniques_before,
       s.last_30_days::bigint[]   AS last_30_days,
       s.uniques_compared::bigint AS uniques_compared,
       s.first_day::integer       AS first_day
FROM report.sites_between(@app::text, @from_day::integer, @to_day::integer, @days_before::integer, @n::integer, nullif(@compared_to::integer, 0)) AS s;

-- name: PanelNumbers :many
-- The numbers of a page or site in up to three rows:
--   1. the date range
--   2. the compared days, unless they are the whole date range
--   3. the previous period
-- If days_before is 0, there is only the first row.
SELECT n.first_day::integer   AS first_day,
       n.last_day::integer    AS last_day,
       coalesce(n.uniques, -1)::bigint AS uniques,
       n.new_visitors::bigint AS new_visitors,
       n.pv::bigint           AS pv,
       n.hot::bigint          AS hot,
       n.exact::boolean       AS exact
FROM report.numbers(@app::text, @target::text, @from_day::integer, @to_day::integer) AS n
UNION
SELECT c.first_day::integer,
       c.last_day::integer,
       coalesce(c.uniques, -1)::bigint,
       c.new_visitors::bigint,
       c.pv::bigint,
       c.hot::bigint,
       c.exact::boolean
FROM report.numbers(@app::text, @target::text, @from_day::integer, @compared_to::integer, @days_before::integer) AS c
WHERE @days_before::integer > 0
ORDER BY last_day DESC;

-- name: PanelTotals :many
-- The displayed all-time numbers of a page or site, and the part of them that was counted here.
SELECT t.pv::bigint          AS pv,
       t.uv::bigint          AS uv,
       t.hot::bigint         AS hot,
       t.counted_pv::bigint  AS counted_pv,
       t.counted_uv::bigint  AS counted_uv,
       t.counted_hot::bigint AS counted_hot
FROM report.totals(@app::text, @target::text) AS t;

-- name: PanelChart :many
-- The numbers of a page or site by day, week or month, with the visitors of the previous period and the notes about
-- these days. The notes include those about the site and, if notes_of_all is true, those about the whole app. The
-- numbers are -1 for a period that ended before the site's first counted day. For all sites of an app together, only
-- hot (page views) is available.
SELECT c.first_day::integer      AS first_day,
       c.last_day::integer       AS last_day,
       coalesce(c.visitors, -1)::bigint     AS visitors,
       coalesce(c.new_visitors, -1)::bigint AS new_visitors,
       coalesce(c.pv, -1)::bigint           AS pv,
       coalesce(c.hot, -1)::bigint          AS hot,
       coalesce(c.visitors_before, 0)::bigint   AS visitors_before,
       (c.visitors_before IS NOT NULL)::boolean AS compared,
       ARRAY(SELECT to_char(n.day, 'YYYY-MM-DD ') || n.note
             FROM report.notes AS n
             WHERE n.app = @app::text
               AND n.day_id BETWEEN c.first_day AND c.last_day
               AND (n.site = split_part(@target::text, '/', 1) OR n.site IS NULL AND @notes_of_all::boolean)
             ORDER BY n.day_id, n.note)::text[] AS notes
FROM report.periods(@app::text, @target::text, @from_day::integer, @to_day::integer, @period::text, @days_before::integer, @compared_from::integer, @compared_to::integer) AS c;

-- name: PanelPages :many
-- The top pages of an app, or of one site, in a date range. Each page also has its unique visitors (uniques) in the
-- compared days of the range and in the previous period. Pages with equal numbers are in order of page_id.
SELECT t.uri::text                AS uri,
       coalesce(t.uniques, -1)::bigint AS uniques,
       t.new_visitors::bigint     AS new_visitors,
       t.pv::bigint               AS pv,
       t.hot::bigint              AS hot,
       t.uniques_before::bigint   AS uniques_before,
       t.uniques_compared::bigint AS uniques_compared,
       t.page_id::bigint          AS page_id,
       coalesce(t.title, '')::text AS title
FROM report.top_pages(@app::text, @from_day::integer, @to_day::integer, @n::integer, @by::text, nullif(@site::text, ''), @days_before::integer, nullif(@compared_to::integer, 0)) AS t;

-- name: PanelSearch :many
-- The most visited pages of a site (all time) whose path or title contains a text.
SELECT f.uri::text                AS uri,
       f.uniques::bigint          AS uniques,
       f.new_visitors::bigint     AS new_visitors,
       f.pv::bigint               AS pv,
       f.hot::bigint              AS hot,
       f.uniques_before::bigint   AS uniques_before,
       f.uniques_compared::bigint AS uniques_compared,
       0::bigint                  AS page_id,
       coalesce(f.title, '')::text AS title
FROM report.find_pages(@app::text, @site::text, @part::text, @from_day::integer, @to_day::integer, @n::integer, @days_before::integer, nullif(@compared_to::integer, 0), @find::text) AS f;

-- name: PanelReturns :many
-- How often visitors of a page or site returned in a date range, by the number of days since their
-- previous visit.
SELECT r.from_days::integer AS from_days,
       r.to_days::integer   AS to_days,
       r.visitors::bigint   AS visitors
FROM report.returned_after(@app::text, @target::text, @from_day::integer, @to_day::integer) AS r;

-- name: PanelFirstVisits :many
-- The first visits of the latest visitors of a page or site, and of its latest visitors with a round rank, such as
-- 100.
SELECT f.rank::bigint       AS rank,
       f.first_day::integer AS first_day,
       f.is_round::boolean  AS is_round
FROM report.first_visits(@app::text, @target::text, @few::integer) AS f;

-- name: PanelWhoCame :many
-- The visitors of a page or site on each day of a range, the last day first. The list starts after the
-- visitor @after on @after_day. If after_day is 0, it starts at the beginning.
SELECT w.day_id::integer       AS day,
       w.visitor::inet         AS visitor,
       w.rank::bigint          AS rank,
       w.first_day::integer    AS first_day,
       w.previous_day::integer AS previous_day,
       w.last_day::integer     AS last_day
FROM report.who_came(@app::text, @target::text, @from_day::integer, @to_day::integer, @n::integer, nullif(@after_day::integer, 0), nullif(@after::text, '')::inet) AS w;

-- name: PanelTags :many
-- The values of a tag, each with the number of visitors of a page or site: in a date range (pv), in the
-- compared days of the range, and in the previous period. The last row has the visitors without a value.
SELECT t.value::text         AS value,
       t.pv::bigint          AS pv,
       t.newcomers::bigint   AS newcomers,
       t.pv_before::bigint   AS pv_before,
       t.pv_compared::bigint AS pv_compared,
       t.since::integer      AS since
FROM report.tags(@app::text, @target::text, @name::text, @from_day::integer, @to_day::integer, @n::integer, @days_before::integer, nullif(@compared_to::integer, 0)) AS t;

-- name: PanelTagPages :many
-- The pages of a site, each with the number of its visitors in a date range who had a value of a tag.
SELECT t.uri::text         AS uri,
       t.pv::bigint        AS pv,
       t.newcomers::bigint AS newcomers,
       coalesce(t.title, '')::text AS title
FROM report.tag_pages(@app::text, @name::text, @value::text, @from_day::integer, @to_day::integer, @n::integer, @site::text) AS t;

-- name: PanelToldPages :many
-- Pages of a site as other tools have counted them in a date range, the most viewed first. pv is the sum
-- of daily visitors, and hot is page views. -1 means unknown.
SELECT h.target AS uri,
       coalesce(CASE WHEN count(*) = count(h.visitors)   THEN sum(h.visitors)   END, -1)::bigint AS pv,
       coalesce(CASE WHEN count(*) = count(h.page_views) THEN sum(h.page_views) END, -1)::bigint AS hot
FROM report.history AS h
WHERE h.app = @app::text
  AND h.site = @site::text
  AND h.target <> h.site
  AND h.day_id BETWEEN @from_day::integer AND @to_day::integer
  AND h.shown
GROUP BY h.target
ORDER BY hot DESC, pv DESC, uri
LIMIT @n::integer;

-- name: PanelHere :many
-- The number of distinct visitors of a site within the last five minutes.
SELECT report.here(@app::text, @target::text)::bigint          AS visitors,
       (extract(epoch FROM here_lasts()) / 60)::integer AS minutes;

-- name: PanelOnePage :many
-- How many visitors of a site saw only one page on a day, counting each visitor once a day. unknown counts the
-- visitors who only saw the page (other) or (deleted). These pages have the numbers of several pages, so the visitor
-- may have seen more than one.
SELECT o.visits::bigint   AS visits,
       o.one_page::bigint AS one_page,
       o.unknown::bigint  AS unknown
FROM report.one_page_where(@app::text, @target::text, @from_day::integer, @to_day::integer, @conditions::text[]) AS o;

-- name: PanelGoals :many
-- The number of visitors of a site who reached each goal, and the number of all visitors. split is ''
-- for totals, day for numbers by day, or the name of a tag for numbers by its values.
SELECT g.goal::text          AS goal,
       g.value::text         AS value,
       g.visitors::bigint    AS visitors,
       g.of_visitors::bigint AS of_visitors
FROM report.goals_where(@app::text, @target::text, @from_day::integer, @to_day::integer, @conditions::text[], nullif(@goal::text, ''), nullif(@split::text, ''), @n::integer) AS g;

-- name: PanelFunnel :many
-- How many visitors of a site completed a step of a funnel and all earlier steps by the end of a date range. same_day
-- is the number of visitors who completed them on a single day.
SELECT f.place::integer   AS place,
       f.step::text       AS step,
       f.visitors::bigint AS visitors,
       f.same_day::bigint AS same_day
FROM report.funnel_where(@app::text, @target::text, @from_day::integer, @to_day::integer, @steps::text[], @conditions::text[]) AS f;
