-- Not on top of the view returns, through which a target that is asked for would not be found by
-- its key.
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

COMMENT ON VIEW   report.returns              IS 'How many visitors of each target came on a day, and before that last on a previous day; for ever.';
COMMENT ON COLUMN report.returns.app          IS 'The app that counts it.';
COMMENT ON COLUMN report.returns.target       IS 'The page, or the site.';
COMMENT ON COLUMN report.returns.day_id       IS 'The day as a number, like 20190629.';
COMMENT ON COLUMN report.returns.previous_day IS 'The last day before it on which these visitors came.';
COMMENT ON COLUMN report.returns.visitors     IS 'How many there were.';
