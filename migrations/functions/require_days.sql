-- A visit counts its page and its site on the same day, and a site's day never runs backwards: what
-- an instance with a slow clock still takes for yesterday counts today where another instance has
-- begun today. days has a row for each day of a site, written under the site's lock, which the
-- batch holds.
--
-- A day that it is nowhere yet would hold the site there until it comes. One that the site has been
-- counted on already is let pass: this server's clock was wrong then, and the site counts on.
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

COMMENT ON FUNCTION require_days(bigint[], integer[]) IS 'Fails with SQLSTATE FF002 when one of some sites has been counted on a later day than the one beside it, and with FF003 when that day has come nowhere yet.';
