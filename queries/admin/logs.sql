-- Access logs that were imported.

-- name: LinesList :many
-- How many lines of an app's access logs were counted, by server and by the day in the line, with the
-- latest time.
SELECT s.server::text AS server, s.day::text AS day, sum(s.lines)::bigint AS lines, max(s.latest)::timestamptz AS latest
FROM (
    SELECT unnest(h.servers) AS server, to_char(date '1970-01-01' + h.hour / 24, 'YYYY-MM-DD') AS day,
           unnest(h.versions) - unnest(h.gone) AS lines, unnest(h.latest) AS latest
    FROM log_hours AS h
    WHERE h.app_id = @app_id
) AS s
WHERE s.lines > 0
GROUP BY s.server, s.day
ORDER BY s.server, s.day;

-- name: LinesForget :one
-- Forgets which lines were counted of some hours; of one server, or null: of all. Returns how many.
SELECT forget_lines(@app_id, sqlc.narg(server), @from_hour, @to_hour)::bigint AS forgotten;
