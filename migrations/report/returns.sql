-- Does not use the view returns, because a lookup by target through that view would not use the
-- keys of the tables.
CREATE VIEW report.returns AS
SELECT a.name AS app, t.uri AS target, o.day_id, o.previous_day, o.visitors
FROM open_returns AS o
JOIN pages AS t ON t.id = o.page_id
JOIN apps AS a  ON a.id = t.app_id
UNION ALL
SELECT a.name, t.uri, p.day_id, to_char(day_date(p.day_id) - u.days_before, 'YYYYMMDD')::integer, u.visitors
FROM packed_returns AS p
JOIN pages AS t ON t.id = p.page_id
JOIN apps AS a  ON a.id = t.app_id
CROSS JOIN LATERAL unpack_returns(p.previous_days, p.visitors) AS u;

COMMENT ON VIEW   report.returns              IS 'Visitors of each target on a day, by the last earlier day on which they visited it. Kept for ever.';
COMMENT ON COLUMN report.returns.app          IS 'App that counts the target.';
COMMENT ON COLUMN report.returns.target       IS 'The page or site.';
COMMENT ON COLUMN report.returns.day_id       IS 'The day as a number, like 20190629.';
COMMENT ON COLUMN report.returns.previous_day IS 'The last earlier day on which these visitors visited the target.';
COMMENT ON COLUMN report.returns.visitors     IS 'Number of visitors.';
