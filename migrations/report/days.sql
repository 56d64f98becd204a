CREATE VIEW report.days AS
SELECT a.name AS app, p.uri AS target, d.day_id, day_date(d.day_id) AS day, d.pv, d.new_visitors, d.hot
FROM days AS d
JOIN pages AS p ON p.id = d.page_id
JOIN apps AS a  ON a.id = p.app_id;

COMMENT ON VIEW   report.days              IS 'Counted numbers of each target on each day, kept for ever.';
COMMENT ON COLUMN report.days.app          IS 'App that counts the target.';
COMMENT ON COLUMN report.days.target       IS 'The page or site.';
COMMENT ON COLUMN report.days.day_id       IS 'The day as a number, like 20190629.';
COMMENT ON COLUMN report.days.day          IS 'The day as a date.';
COMMENT ON COLUMN report.days.pv           IS 'Visits: one for each visitor of the day.';
COMMENT ON COLUMN report.days.new_visitors IS 'New visitors, whose first day it is.';
COMMENT ON COLUMN report.days.hot          IS 'Page views.';
