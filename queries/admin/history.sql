-- What others have counted by day.

-- name: HistoryOfPageDelete :execrows
-- Deletes the history of a page that is deleted. Its site's has it still.
DELETE FROM history AS h
USING history_days AS d
WHERE d.id = h.day
  AND d.app_id = @app_id
  AND d.site = split_part(@uri, '/', 1)
  AND h.uri = @uri;

-- name: HistoryOfPage :one
-- How many days others have counted for a page.
SELECT count(*) AS days
FROM history_days AS d
JOIN history AS h ON h.day = d.id AND h.uri = @uri
WHERE d.app_id = @app_id
  AND d.site = split_part(@uri, '/', 1);
