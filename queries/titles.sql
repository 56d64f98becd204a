-- Titles of pages.

-- name: TitlesPut :exec
-- Stores titles of pages, unless their app stores no titles. The arrays are the columns of one
-- table.
SELECT put_titles(@pages::bigint[], @titles::text[], @told_at::timestamptz);
