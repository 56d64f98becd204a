CREATE VIEW report.pages AS
SELECT a.name AS app, s.uri AS site, t.uri, t.pv, t.uv, t.hot, t.since, t.counted_pv, t.counted_uv, t.counted_hot, h.title
FROM totals AS t
JOIN pages AS s ON s.id = t.site_id
JOIN apps AS a  ON a.id = t.app_id
LEFT JOIN titles AS h ON h.page_id = t.page_id;

COMMENT ON VIEW   report.pages             IS 'Pages and their all-time totals. For the pages of a folder: WHERE app = ''demo'' AND left(uri, 200) LIKE ''example.com/blog/%'', which uses the index.';
COMMENT ON COLUMN report.pages.app         IS 'App that counts the page.';
COMMENT ON COLUMN report.pages.site        IS 'Site of the page.';
COMMENT ON COLUMN report.pages.uri         IS 'The page, without a scheme: example.com/home.';
COMMENT ON COLUMN report.pages.pv          IS 'Visits, one for each visitor and day, including offsets.';
COMMENT ON COLUMN report.pages.uv          IS 'Visitors, including offsets.';
COMMENT ON COLUMN report.pages.hot         IS 'Page views, including offsets.';
COMMENT ON COLUMN report.pages.since       IS 'Start of the first counted day, in the time zone of the app.';
COMMENT ON COLUMN report.pages.counted_pv  IS 'Part of pv that was counted here.';
COMMENT ON COLUMN report.pages.counted_uv  IS 'Part of uv that was counted here.';
COMMENT ON COLUMN report.pages.counted_hot IS 'Part of hot that was counted here.';
COMMENT ON COLUMN report.pages.title       IS 'Title of the page. Null: unknown.';
