-- Noting what was changed.

-- name: ChangeAdd :exec
-- Notes a change.
INSERT INTO changes (who, app, what, was, is_now)
VALUES (@who, @app, @what, @was, @is_now);
