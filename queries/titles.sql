-- Titles of pages.

-- name: TitlesPut :exec
-- Gives pages their titles, unless their app keeps none; the arrays are one table.
SELECT put_titles(@pages::bigint[], @titles::text[], @told_at::timestamptz);
