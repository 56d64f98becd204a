CREATE VIEW report.history AS
SELECT a.name AS app, d.site, h.uri AS target, d.day_id, day_date(d.day_id) AS day, h.page_views, h.visits, h.visitors, h.new_visitors,
       NOT EXISTS (SELECT
                   FROM pages AS p
                   JOIN days AS c ON c.page_id = p.id AND c.day_id = d.day_id
                   WHERE p.app_id = d.app_id
                     AND p.key = page_key(d.site)) AS shown,
       i.source
FROM history AS h
JOIN history_days AS d    ON d.id = h.day
JOIN history_imports AS i ON i.app_id = d.app_id AND i.id = d.import_id
JOIN apps AS a            ON a.id = d.app_id;

COMMENT ON VIEW   report.history              IS 'Numbers imported from other programs, for each target on each day. A query for one target should also specify its site, which has the index.';
COMMENT ON COLUMN report.history.app          IS 'App that counts the target now.';
COMMENT ON COLUMN report.history.site         IS 'Site of the target.';
COMMENT ON COLUMN report.history.target       IS 'The page or site.';
COMMENT ON COLUMN report.history.day_id       IS 'The day as a number, like 20190629.';
COMMENT ON COLUMN report.history.day          IS 'The day as a date.';
COMMENT ON COLUMN report.history.page_views   IS 'Page views, which report.days calls hot. Null: the other program did not report this number. The same holds for the other numbers.';
COMMENT ON COLUMN report.history.visits       IS 'Visits (sessions) of the other program.';
COMMENT ON COLUMN report.history.visitors     IS 'Number of visitors of the day, which report.days calls pv.';
COMMENT ON COLUMN report.history.new_visitors IS 'New visitors, as the other program identifies them.';
COMMENT ON COLUMN report.history.shown        IS 'Reports and the dashboard show the row, because the site was not counted here on that day.';
COMMENT ON COLUMN report.history.source       IS 'The other program: goatcounter, umami, plausible, matomo or ga4, or csv.';
