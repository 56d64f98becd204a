CREATE VIEW report.sites AS
SELECT a.name AS app, t.uri AS site, t.pv, t.uv, t.hot, t.since, t.counted_pv, t.counted_uv, t.counted_hot
FROM totals AS t
JOIN apps AS a ON a.id = t.app_id
WHERE t.site_id IS NULL;

COMMENT ON VIEW   report.sites             IS 'Sites and what is shown of them of all time.';
COMMENT ON COLUMN report.sites.app         IS 'The app that counts it.';
COMMENT ON COLUMN report.sites.site        IS 'host, or host:port.';
COMMENT ON COLUMN report.sites.pv          IS 'Visits: one for each visitor and day, with those from elsewhere (offsets).';
COMMENT ON COLUMN report.sites.uv          IS 'Visitors, also with those from elsewhere.';
COMMENT ON COLUMN report.sites.hot         IS 'Page views, also with those from elsewhere.';
COMMENT ON COLUMN report.sites.since       IS 'When the first day began that was counted, in the time zone of the app.';
COMMENT ON COLUMN report.sites.counted_pv  IS 'Those of pv that were counted here.';
COMMENT ON COLUMN report.sites.counted_uv  IS 'Those of uv.';
COMMENT ON COLUMN report.sites.counted_hot IS 'Those of hot.';
