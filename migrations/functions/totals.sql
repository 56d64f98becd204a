-- The one place in SQL where numbers from elsewhere are added to what was counted. (What the
-- service answers to visits is added up in its memory.)
CREATE VIEW totals AS
SELECT p.id                        AS page_id,
       p.app_id,
       p.site_id,
       p.uri,
       coalesce((SELECT day_date(d.day_id)::timestamp AT TIME ZONE a.tz
                 FROM days AS d
                 JOIN apps AS a ON a.id = p.app_id
                 WHERE d.page_id = p.id
                 ORDER BY d.day_id
                 LIMIT 1), p.created_at)::timestamptz AS since,
       c.pv + coalesce(o.pv, 0)    AS pv,
       c.uv + coalesce(o.uv, 0)    AS uv,
       c.hot + coalesce(o.hot, 0)  AS hot,
       c.pv                        AS counted_pv,
       c.uv                        AS counted_uv,
       c.hot                       AS counted_hot
FROM pages AS p
JOIN counters AS c     ON c.page_id = p.id
LEFT JOIN offsets AS o ON o.app_id = p.app_id AND o.key = p.key;

COMMENT ON VIEW   totals             IS 'Targets, with what is shown of all time: what was counted, and the offsets.';
COMMENT ON COLUMN totals.page_id     IS 'The target.';
COMMENT ON COLUMN totals.app_id      IS 'The app that counts it.';
COMMENT ON COLUMN totals.site_id     IS 'The site of this page; null for a site.';
COMMENT ON COLUMN totals.uri         IS 'As in pages.';
COMMENT ON COLUMN totals.since       IS 'When the first day began that was counted, in the time zone of the app.';
COMMENT ON COLUMN totals.pv          IS '(visitor, day) pairs.';
COMMENT ON COLUMN totals.uv          IS 'Visitors.';
COMMENT ON COLUMN totals.hot         IS 'Visits.';
COMMENT ON COLUMN totals.counted_pv  IS 'Those of pv that were counted here.';
COMMENT ON COLUMN totals.counted_uv  IS 'Those of uv.';
COMMENT ON COLUMN totals.counted_hot IS 'Those of hot.';
