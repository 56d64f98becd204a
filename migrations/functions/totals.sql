-- The only place in SQL where offsets are added to counted numbers. (The service adds them in memory when it responds to visits.)
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

COMMENT ON VIEW   totals             IS 'Targets and their totals as shown: counted numbers plus offsets.';
COMMENT ON COLUMN totals.page_id     IS 'The target.';
COMMENT ON COLUMN totals.app_id      IS 'App that counts the target.';
COMMENT ON COLUMN totals.site_id     IS 'Site of the page. Null: the target is a site.';
COMMENT ON COLUMN totals.uri         IS 'Uri, as in pages.';
COMMENT ON COLUMN totals.since       IS 'Start of the first counted day, in the time zone of the app.';
COMMENT ON COLUMN totals.pv          IS '(visitor, day) pairs.';
COMMENT ON COLUMN totals.uv          IS 'Visitors.';
COMMENT ON COLUMN totals.hot         IS 'Visits.';
COMMENT ON COLUMN totals.counted_pv  IS 'Part of pv that was counted here.';
COMMENT ON COLUMN totals.counted_uv  IS 'Part of uv that was counted here.';
COMMENT ON COLUMN totals.counted_hot IS 'Part of hot that was counted here.';
