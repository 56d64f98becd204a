CREATE VIEW report.notes AS
SELECT a.name AS app, n.site, n.day_id, day_date(n.day_id) AS day, n.text AS note
FROM notes AS n
JOIN apps AS a ON a.id = n.app_id;

COMMENT ON VIEW   report.notes        IS 'What people have noted of days, as the dashboard shows it on its charts.';
COMMENT ON COLUMN report.notes.app    IS 'The app of which it was noted.';
COMMENT ON COLUMN report.notes.site   IS 'The one site of which it was. Null: all of the app.';
COMMENT ON COLUMN report.notes.day_id IS 'The day as a number, like 20190629.';
COMMENT ON COLUMN report.notes.day    IS 'The day as a date.';
COMMENT ON COLUMN report.notes.note   IS 'A sentence.';
