CREATE VIEW report.sites AS
SELECT a.name AS app, t.uri AS site, t.pv, t.uv, t.hot, t.since, t.counted_pv, t.counted_uv, t.counted_hot
FROM totals AS t
JOIN apps AS a ON a.id = t.app_id
WHERE t.site_id IS NULL;

COMMENT ON VIEW   report.sites             IS 'Sites and their all-time totals.';
COMMENT ON COLUMN report.sites.app         IS 'App that counts the site.';
COMMENT ON COLUMN report.sites.site        IS 'host, or host:port.';
COMMENT ON COLUMN report.sites.pv          IS 'Visits, one for each visitor and day, including offsets.';
COMMENT ON COLUMN report.sites.uv          IS 'Visitors, including offsets.';
COMMENT ON COLUMN report.sites.hot         IS 'Page views, including offsets.';
COMMENT ON COLUMN report.sites.since       IS 'Start of the first counted day, in the time zone of the app.';
COMMENT ON COLUMN report.sites.counted_pv  IS 'Part of pv that was counted here.';
COMMENT ON COLUMN report.sites.counted_uv  IS 'Part of uv that was counted here.';
COMMENT ON COLUMN report.sites.counted_hot IS 'Part of hot that was counted here.';
