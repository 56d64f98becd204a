CREATE VIEW report.sites AS
SELECT a.name AS app, p.uri AS site, c.pv, c.uv, c.hot, p.created_at AS since
FROM pages AS p
JOIN apps AS a     ON a.id = p.app_id
JOIN counters AS c ON c.page_id = p.id
WHERE p.site_id IS NULL;

COMMENT ON VIEW   report.sites       IS 'Sites and what was counted for them in all.';
COMMENT ON COLUMN report.sites.app   IS 'The app that counts it.';
COMMENT ON COLUMN report.sites.site  IS 'host, or host:port.';
COMMENT ON COLUMN report.sites.pv    IS '(visitor, day) pairs.';
COMMENT ON COLUMN report.sites.uv    IS 'Visitors.';
COMMENT ON COLUMN report.sites.hot   IS 'Visits.';
COMMENT ON COLUMN report.sites.since IS 'When it was counted first.';
