-- Statements about access logs: the lines that were counted, and the files that were read.

-- name: LogKeyMake :one
-- Returns the random key for hashing lines of an app's logs. If the app has no such key yet, stores and returns fresh.
SELECT make_log_key(@app_id, @fresh)::bytea AS log_key;

-- name: LogDayKeys :many
-- Returns the key of each day, for hashing log lines of apps with the setting --visitor daily.
SELECT day_id, key
FROM day_keys;

-- name: CountedLinesGet :many
-- Returns the counted lines of each hour in @all_hours and each compared server, except lines that the caller already has.
-- The compared servers are @compared and the server without a name. If @compared is '', all servers are compared. @hours,
-- @servers and @versions are the columns of one table: the caller has the lines of this hour and server up to this version.
-- The version of an hour and server is the number of the last line that was counted. For each hour and server, returns at
-- most @most blocks of lines, or one row without lines if the caller has them all.
SELECT h.hour, s.server, s.version, s.gone, coalesce(b.first, 0)::bigint AS first, coalesce(b.hashes, '')::bytea AS hashes
FROM log_hours AS h
CROSS JOIN LATERAL (
    SELECT unnest(h.servers)::text AS server, unnest(h.versions)::bigint AS version, unnest(h.gone)::bigint AS gone
) AS s
LEFT JOIN (
    SELECT unnest(@hours::integer[]) AS hour, unnest(@servers::text[]) AS server, unnest(@versions::bigint[]) AS version
) AS k ON k.hour = h.hour AND k.server = s.server
LEFT JOIN LATERAL (
    SELECT l.first, l.hashes
    FROM counted_lines AS l
    WHERE l.app_id = h.app_id
      AND l.hour = h.hour
      AND l.server = s.server
      AND l.first > coalesce(k.version, 0) - 200 -- a block has fewer than 200 lines
      AND l.first + octet_length(l.hashes) / 8 > coalesce(k.version, 0)
    ORDER BY l.first
    LIMIT @most::integer
) AS b ON true
WHERE h.app_id = @app_id
  AND h.hour = ANY (@all_hours::integer[])
  AND (@compared::text = '' OR s.server IN ('', @compared))
ORDER BY h.hour, s.server, b.first;

-- name: ServersNamed :one
-- Returns whether an app has counted lines of a named server other than @server.
SELECT EXISTS (
    SELECT
    FROM log_hours AS h
    WHERE h.app_id = @app_id
      AND NOT h.servers <@ ARRAY[@server::text, '']
)::boolean AS named;

-- name: ReadLogsGet :many
-- Returns for each file how far it was read and counted. state is '' if the file must be read again.
SELECT inode, state, place, sum, start, lines
FROM read_logs
WHERE app_id = @app_id
  AND options = @options
  AND inode = ANY (@inodes::text[]);

-- name: ReadLogsBegin :exec
-- Inserts a row for each file that an import starts to read. run identifies the import. If `import forget` deletes these
-- rows during the import, ReadLogsEnd finds no row and changes nothing.
INSERT INTO read_logs (app_id, options, inode, run)
SELECT @app_id, @options, i.inode, @run
FROM (SELECT unnest(@inodes::text[]) AS inode) AS i
ORDER BY i.inode
ON CONFLICT (app_id, options, inode) DO UPDATE
    SET run = excluded.run,
        state = '',
        read_at = now();

-- name: ReadLogsEnd :exec
-- Records how far an import has read and counted each file. The arrays are the columns of one table, with a row for each
-- file. A state is '' if the file must be read again.
UPDATE read_logs AS r
SET state = f.state,
    place = f.place,
    sum   = f.sum,
    start = f.start,
    lines = f.lines
FROM (
    SELECT unnest(@inodes::text[]) AS inode, unnest(@states::text[]) AS state, unnest(@places::bigint[]) AS place,
           unnest(@sums::bigint[]) AS sum, unnest(@starts::bigint[]) AS start, unnest(@lines::bigint[]) AS lines
) AS f
WHERE r.app_id = @app_id
  AND r.options = @options
  AND r.inode = f.inode
  AND r.run = @run;

-- name: ImportEnd :exec
-- Deletes the position of an import that has ended.
SELECT end_import(@app_id, @run);

-- name: ClosedLogs :many
-- Returns the logs of an app that Footfall 0.2 has counted.
SELECT l.server::text AS server, l.told::text AS told, l.counted::bigint AS counted, l.claimed::bigint AS claimed, l.counted_hash::bytea AS counted_hash,
       l.hash::bytea AS hash, l.keyed::boolean AS keyed, l.last_at::timestamptz AS last_at, l.tail::bytea AS tail, l.hours::integer[] AS hours
FROM closed_logs(@app_id) AS l;
