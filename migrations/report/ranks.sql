-- Does not use the view erased_ranks, because a lookup by target through that view would not use
-- the key of erased_visitors.
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

COMMENT ON VIEW   report.ranks           IS 'Visitors of each target with their ranks: rank N is the N-th visitor.';
COMMENT ON COLUMN report.ranks.app       IS 'App that counts the target.';
COMMENT ON COLUMN report.ranks.target    IS 'The page or site.';
COMMENT ON COLUMN report.ranks.rank      IS 'The number as counted: 1, 2, 3 … The shown number also includes uv of the target''s offset, if it has one (see report.totals).';
COMMENT ON COLUMN report.ranks.visitor   IS 'The visitor''s address (IPv6: the first of its network). In fd00::/8: a hash. Null: erased.';
COMMENT ON COLUMN report.ranks.first_day IS 'Day of the first visit, like 20190629.';
COMMENT ON COLUMN report.ranks.last_day  IS 'Day of the last visit, like 20190629.';
