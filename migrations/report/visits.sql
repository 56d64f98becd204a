CREATE VIEW report.visits AS
SELECT a.name AS app, p.uri, v.ip AS visitor, v.day_id, day_date(v.day_id) AS day
FROM visits AS v
JOIN pages AS p ON p.id = v.page_id AND p.site_id IS NOT NULL
JOIN apps AS a  ON a.id = p.app_id;

COMMENT ON VIEW   report.visits         IS 'Visitors of pages by day, as long as these rows are kept.';
COMMENT ON COLUMN report.visits.app     IS 'App that counts the page.';
COMMENT ON COLUMN report.visits.uri     IS 'The page.';
COMMENT ON COLUMN report.visits.visitor IS 'The visitor''s address (IPv6: the first of its network). In fd00::/8: a hash.';
COMMENT ON COLUMN report.visits.day_id  IS 'The day as a number, like 20190629.';
COMMENT ON COLUMN report.visits.day     IS 'The day as a date.';
