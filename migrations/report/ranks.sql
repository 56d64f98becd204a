-- Not on top of the view erased_ranks, for the reason that report.returns tells.
CREATE VIEW report.ranks AS
SELECT a.name AS app, p.uri AS target, v.rank, v.ip AS visitor, v.first_day, v.last_day
FROM apps AS a
JOIN pages AS p    ON p.app_id = a.id
JOIN visitors AS v ON v.page_id = p.id
UNION ALL
SELECT a.name, p.uri, r.rank, NULL, NULL, NULL
FROM apps AS a
JOIN pages AS p           ON p.app_id = a.id
JOIN erased_visitors AS e ON e.page_id = p.id
CROSS JOIN LATERAL unpack_ranks(e.part, e.place, e.places) AS r (rank);

COMMENT ON VIEW   report.ranks           IS 'Who was visitor number N of each target.';
COMMENT ON COLUMN report.ranks.app       IS 'The app that counts it.';
COMMENT ON COLUMN report.ranks.target    IS 'The page, or the site.';
COMMENT ON COLUMN report.ranks.rank      IS 'The number as it was counted: 1, 2, 3 … What is shown is higher by uv of the offset, if the target has one: report.totals tells.';
COMMENT ON COLUMN report.ranks.visitor   IS 'The visitor''s address, for IPv6 the first of its network; in fd00::/8 a hash. Null: erased.';
COMMENT ON COLUMN report.ranks.first_day IS 'The day of the first visit, like 20190629.';
COMMENT ON COLUMN report.ranks.last_day  IS 'The last day on which the visitor came.';
