-- A visit counts for its page and its site on the same day, and the day of a site never goes back. If one instance has
-- already counted a visit of today, another instance with a slow clock must not count a visit for yesterday. It has to send
-- that visit again for today. The table days has a row for each counted day of a site. Batches write these rows under the
-- site's lock, which this batch holds.
--
-- A day that has not begun in any time zone is refused, because it would block the site until that day. Such a day is
-- accepted only if the site was already counted on it. Then this server's clock was wrong, and the site must be able to
-- continue.
CREATE FUNCTION require_days(sites bigint[], on_days integer[]) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
DECLARE
    latest integer := latest_day();
BEGIN
    IF EXISTS (
        SELECT
        FROM unnest(sites, on_days) AS b (site, day)
        JOIN days AS d ON d.page_id = b.site AND d.day_id > b.day
    ) THEN
        RAISE EXCEPTION 'a site of the batch has been counted on a later day'
            USING ERRCODE = 'FF002', HINT = 'Send the batch again with that day.';
    END IF;
    IF latest < ANY (on_days) THEN
        PERFORM require_day_near(b.day, 0)
        FROM unnest(sites, on_days) AS b (site, day)
        WHERE NOT EXISTS (SELECT FROM days AS d WHERE d.page_id = b.site AND d.day_id = b.day);
    END IF;
END
$$;

COMMENT ON FUNCTION require_days(bigint[], integer[]) IS 'Fails with SQLSTATE FF002 if a site was counted on a later day than the given one, and with FF003 if that day has not started in any time zone.';
