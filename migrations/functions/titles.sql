-- A transaction that deletes a page or an app, or turns titles off, locks the row of the page or app. While a row is locked,
-- titles of this page or app are skipped without waiting.
CREATE FUNCTION put_titles(page_ids bigint[], titles text[], told_at timestamptz) RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    INSERT INTO titles AS t (page_id, title, told_at)
    SELECT n.page_id, n.title, put_titles.told_at
    FROM (
        SELECT p.id AS page_id, g.title
        FROM unnest(page_ids, put_titles.titles) AS g (page_id, title)
        JOIN pages AS p ON p.id = g.page_id
        JOIN apps AS a  ON a.id = p.app_id
        WHERE a.titles
        ORDER BY p.id
        FOR SHARE OF a SKIP LOCKED
        FOR KEY SHARE OF p SKIP LOCKED
    ) AS n
    ON CONFLICT (page_id) DO UPDATE
        SET title   = EXCLUDED.title,
            told_at = EXCLUDED.told_at
        WHERE t.title <> EXCLUDED.title
          AND t.told_at <= EXCLUDED.told_at - interval '1 hour'
$$;

COMMENT ON FUNCTION put_titles(bigint[], text[], timestamptz) IS 'Sets titles of pages, each at most once an hour. The values at one index of the arrays are a page and its title.';

REVOKE ALL ON FUNCTION put_titles(bigint[], text[], timestamptz) FROM PUBLIC;
