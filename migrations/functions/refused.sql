-- Stores messages from a part of a queue that could not be counted. This transaction has moved the part's position past them,
-- so no other session writes refused messages of this part. Only the last 1,000 refused messages of a part stay, so a
-- producer that sends only garbage does not fill the disk. If an operator has set the position back, a message may already be
-- stored, and is not changed.
CREATE FUNCTION refuse_messages(app integer, source text, part text, positions bigint[], reasons text[], beginnings text[]) RETURNS void
LANGUAGE sql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    INSERT INTO refused (app_id, source, part, position, reason, beginning)
    SELECT app, source, part, m.position, m.reason, m.beginning
    FROM unnest(positions, reasons, beginnings) AS m (position, reason, beginning)
    ORDER BY m.position
    ON CONFLICT DO NOTHING;

    DELETE FROM refused AS r
    WHERE r.app_id = app
      AND r.source = refuse_messages.source
      AND r.part = refuse_messages.part
      AND r.position <= (
          SELECT l.position
          FROM refused AS l
          WHERE l.app_id = app
            AND l.source = refuse_messages.source
            AND l.part = refuse_messages.part
          ORDER BY l.position DESC
          OFFSET 1000
          LIMIT 1
      );
$$;

COMMENT ON FUNCTION refuse_messages(integer, text, text, bigint[], text[], text[]) IS 'Stores messages from a part of a queue that could not be counted, and deletes older ones of the part, so that at most 1,000 stay.';

REVOKE ALL ON FUNCTION refuse_messages(integer, text, text, bigint[], text[], text[]) FROM PUBLIC;

-- Deletes some of the messages that were refused more than 7 days ago. Skips messages that another session deletes.
CREATE FUNCTION forget_refused(most integer) RETURNS bigint
LANGUAGE sql
SECURITY DEFINER
SET search_path = footfall, pg_temp
AS $$
    WITH old AS (
        SELECT r.app_id, r.source, r.part, r.position
        FROM refused AS r
        WHERE r.refused_at < now() - interval '7 days'
        ORDER BY r.refused_at
        LIMIT most
        FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM refused AS r
        USING old
        WHERE (r.app_id, r.source, r.part, r.position) = (old.app_id, old.source, old.part, old.position)
        RETURNING r.app_id
    )
    SELECT count(*) FROM gone
$$;

COMMENT ON FUNCTION forget_refused(integer) IS 'Deletes at most this many messages that were refused more than 7 days ago, and returns their number.';

REVOKE ALL ON FUNCTION forget_refused(integer) FROM PUBLIC;
