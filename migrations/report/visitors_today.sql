CREATE VIEW report.visitors_today AS
SELECT a.name AS app, p.uri AS target, v.ip AS visitor, w.rank, w.first_day = v.day_id AS is_new
FROM apps AS a
JOIN pages AS p ON p.app_id = a.id
CROSS JOIN LATERAL (
    SELECT o.page_id, o.day_id, o.ip
    FROM visits AS o
    WHERE o.page_id = p.id
      AND o.day_id = today(a.tz)
    OFFSET 0 -- so that only the partition of the day is opened
) AS v
LEFT JOIN visitors AS w ON w.page_id = v.page_id AND w.ip = v.ip;

COMMENT ON VIEW   report.visitors_today         IS 'Visitors of each target today, in the time zone of its app.';
COMMENT ON COLUMN report.visitors_today.app     IS 'App that counts the target.';
COMMENT ON COLUMN report.visitors_today.target  IS 'The page or site.';
COMMENT ON COLUMN report.visitors_today.visitor IS 'The visitor''s address (IPv6: the first of its network). In fd00::/8: a hash.';
COMMENT ON COLUMN report.visitors_today.rank    IS 'Rank of the visitor at the target.';
COMMENT ON COLUMN report.visitors_today.is_new  IS 'Today is the visitor''s first day at the target.';
