CREATE VIEW report.notes AS
SELECT a.name AS app, n.site, n.day_id, day_date(n.day_id) AS day, n.text AS note
FROM notes AS n
JOIN apps AS a ON a.id = n.app_id;

COMMENT ON VIEW   report.notes        IS 'Notes about days, as the dashboard shows them on its charts.';
COMMENT ON COLUMN report.notes.app    IS 'The app.';
COMMENT ON COLUMN report.notes.site   IS 'Site that the note is about. Null: the whole app.';
COMMENT ON COLUMN report.notes.day_id IS 'The day as a number, like 20190629.';
COMMENT ON COLUMN report.notes.day    IS 'The day as a date.';
COMMENT ON COLUMN report.notes.note   IS 'Text of the note.';
