CREATE VIEW report.pages AS
SELECT a.name AS app, s.uri AS site, p.uri, c.pv, c.uv, c.hot, p.created_at AS since
FROM pages AS p
JOIN pages AS s    ON s.id = p.site_id
JOIN apps AS a     ON a.id = p.app_id
JOIN counters AS c ON c.page_id = p.id;

COMMENT ON VIEW   report.pages       IS 'Pages and what was counted for them in all.';
COMMENT ON COLUMN report.pages.app   IS 'The app that counts it.';
COMMENT ON COLUMN report.pages.site  IS 'Its site.';
COMMENT ON COLUMN report.pages.uri   IS 'The page, without a scheme: example.com/home.';
COMMENT ON COLUMN report.pages.pv    IS '(visitor, day) pairs.';
COMMENT ON COLUMN report.pages.uv    IS 'Visitors.';
COMMENT ON COLUMN report.pages.hot   IS 'Visits.';
COMMENT ON COLUMN report.pages.since IS 'When it was counted first.';
