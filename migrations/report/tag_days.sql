CREATE VIEW report.tag_days AS
SELECT a.name AS app, p.uri AS target, d.day_id, day_date(d.day_id) AS day, t.name, t.value, d.pv, d.newcomers
FROM tag_days AS d
JOIN pages AS p ON p.id = d.page_id
JOIN tags AS t  ON t.id = d.tag_id
JOIN apps AS a  ON a.id = p.app_id;

COMMENT ON VIEW   report.tag_days           IS 'Visitors of each target by tag and day. Sites have all tags, pages only source and campaign. The rest of pv in report.days had no tag. Updated about a second after other numbers.';
COMMENT ON COLUMN report.tag_days.app       IS 'App that counts the target.';
COMMENT ON COLUMN report.tag_days.target    IS 'The page or site.';
COMMENT ON COLUMN report.tag_days.day_id    IS 'The day as a number, like 20190629.';
COMMENT ON COLUMN report.tag_days.day       IS 'The day as a date.';
COMMENT ON COLUMN report.tag_days.name      IS 'source, campaign, country, language, device, system, browser, hour, or one of the app''s own.';
COMMENT ON COLUMN report.tag_days.value     IS 'Value of the tag of the visit with which the visitor was counted on that day. (other): all values that are not stored separately.';
COMMENT ON COLUMN report.tag_days.pv        IS 'Visitors of the day.';
COMMENT ON COLUMN report.tag_days.newcomers IS 'Visitors whose first visit ever had the tag. Their sum over all days is the number of visitors by their first visit.';
