CREATE VIEW report.pages AS
SELECT a.name AS app, s.uri AS site, t.uri, t.pv, t.uv, t.hot, t.since, t.counted_pv, t.counted_uv, t.counted_hot, h.title
FROM totals AS t
JOIN pages AS s ON s.id = t.site_id
JOIN apps AS a  ON a.id = t.app_id
LEFT JOIN titles AS h ON h.page_id = t.page_id;

COMMENT ON VIEW   report.pages             IS 'Pages and what is shown of them of all time. Those of a folder: WHERE app = ''demo'' AND left(uri, 200) LIKE ''example.com/blog/%'', as the index has them.';
COMMENT ON COLUMN report.pages.app         IS 'The app that counts it.';
COMMENT ON COLUMN report.pages.site        IS 'Its site.';
COMMENT ON COLUMN report.pages.uri         IS 'The page, without a scheme: example.com/home.';
COMMENT ON COLUMN report.pages.pv          IS 'Visits: one for each visitor and day, with those from elsewhere (offsets).';
COMMENT ON COLUMN report.pages.uv          IS 'Visitors, also with those from elsewhere.';
COMMENT ON COLUMN report.pages.hot         IS 'Page views, also with those from elsewhere.';
COMMENT ON COLUMN report.pages.since       IS 'When the first day began that was counted, in the time zone of the app.';
COMMENT ON COLUMN report.pages.counted_pv  IS 'Those of pv that were counted here.';
COMMENT ON COLUMN report.pages.counted_uv  IS 'Those of uv.';
COMMENT ON COLUMN report.pages.counted_hot IS 'Those of hot.';
COMMENT ON COLUMN report.pages.title       IS 'What it calls itself; null: it is not known.';
