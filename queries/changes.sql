-- The log of changes.

-- name: ChangeAdd :exec
-- Records a change.
INSERT INTO changes (who, app, what, was, is_now)
VALUES (@who, @app, @what, @was, @is_now);
