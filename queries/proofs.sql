-- When `footfall verify` last proved that the counted numbers are correct.

-- name: ProofNote :exec
-- Records that `footfall verify` has proved all numbers at this moment.
INSERT INTO epochs (name, value)
VALUES ('proved', floor(extract(epoch FROM clock_timestamp()))::bigint)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: ProofLast :one
-- The time of the last proof, in seconds since 1970; 0: unknown.
SELECT coalesce(max(e.value), 0)::bigint AS at
FROM epochs AS e
WHERE e.name = 'proved';
