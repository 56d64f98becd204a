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

COMMENT ON VIEW   report.history              IS 'What others have counted for each target on each day, as it was imported. Of one target name its site, too: it is found by that.';
COMMENT ON COLUMN report.history.app          IS 'The app that counts the target now.';
COMMENT ON COLUMN report.history.site         IS 'The site of the target.';
COMMENT ON COLUMN report.history.target       IS 'The page, or the site.';
COMMENT ON COLUMN report.history.day_id       IS 'The day as a number, like 20190629.';
COMMENT ON COLUMN report.history.day          IS 'The day as a date.';
COMMENT ON COLUMN report.history.page_views   IS 'Page views: what is hot in report.days. Null, as each number: they do not tell.';
COMMENT ON COLUMN report.history.visits       IS 'Their visits (sessions).';
COMMENT ON COLUMN report.history.visitors     IS 'Visitors of the day: what is pv in report.days.';
COMMENT ON COLUMN report.history.new_visitors IS 'Those of them that they take for new.';
COMMENT ON COLUMN report.history.shown        IS 'Reports and the dashboard show it: the site was not counted here on that day.';
COMMENT ON COLUMN report.history.source       IS 'Who counted: goatcounter, umami, plausible, matomo, ga4; or csv.';
