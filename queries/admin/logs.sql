-- Counted lines of access logs.

-- name: LinesList :many
-- Returns for each server and day how many lines of an app's access logs were counted, and the time of the last
-- counted line. The day and the time are from the lines themselves.
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
-- Forgets which lines of access logs were counted in some hours, for one web server, or for all if server is null.
-- Returns the number of forgotten lines.
SELECT forget_lines(@app_id, sqlc.narg(server), @from_hour, @to_hour)::bigint AS forgotten;
