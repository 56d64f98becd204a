CREATE VIEW report.tag_days AS
SELECT a.name AS app, p.uri AS target, d.day_id, day_date(d.day_id) AS day, t.name, t.value, d.pv, d.newcomers
FROM tag_days AS d
JOIN pages AS p ON p.id = d.page_id
JOIN tags AS t  ON t.id = d.tag_id
JOIN apps AS a  ON a.id = p.app_id;

COMMENT ON VIEW   report.tag_days           IS 'What the visitors of each target brought on each day: sites have all tags, pages those of source and campaign. What report.days has more came without. It follows a second or so after the other numbers.';
COMMENT ON COLUMN report.tag_days.app       IS 'The app that counts it.';
COMMENT ON COLUMN report.tag_days.target    IS 'The page, or the site.';
COMMENT ON COLUMN report.tag_days.day_id    IS 'The day as a number, like 20190629.';
COMMENT ON COLUMN report.tag_days.day       IS 'The day as a date.';
COMMENT ON COLUMN report.tag_days.name      IS 'source, campaign, country, language, device, system, browser, hour, or one of the app''s own.';
COMMENT ON COLUMN report.tag_days.value     IS 'What the visit said with which the visitor was counted on that day; (other): one that is not kept by itself.';
COMMENT ON COLUMN report.tag_days.pv        IS 'Visitors of the day.';
COMMENT ON COLUMN report.tag_days.newcomers IS 'Those of them who got their rank with that visit: of all days they add up to visitors, each by the first visit ever.';
