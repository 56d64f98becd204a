-- When `footfall verify` proved last what was counted.

-- name: ProofNote :exec
-- Notes that all of it was proved at this moment.
INSERT INTO epochs (name, value)
VALUES ('proved', floor(extract(epoch FROM clock_timestamp()))::bigint)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: ProofLast :one
-- When that was, in seconds since 1970; 0: it is not known.
SELECT coalesce(max(e.value), 0)::bigint AS at
FROM epochs AS e
WHERE e.name = 'proved';
