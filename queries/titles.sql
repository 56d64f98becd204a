-- Titles of pages.

-- name: TitlesPut :exec
-- Stores titles of pages, unless their app stores none. The arrays are one table.
SELECT put_titles(@pages::bigint[], @titles::text[], @told_at::timestamptz);
