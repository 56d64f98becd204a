-- Titles of pages.

-- name: TitlesPut :exec
-- Stores titles of pages, unless their app stores no titles. The values at one index of the arrays
-- are a page and its title.
SELECT put_titles(@pages::bigint[], @titles::text[], @told_at::timestamptz);
