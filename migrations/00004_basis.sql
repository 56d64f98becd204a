-- What a running instance remembers of the tables, and how it learns that this no longer holds.
--
-- An instance remembers which target has which id, who came to it with which rank, and on which day he was last counted. None of
-- this ever changes by counting. It goes wrong only when rows are erased, or when the database is another one than before: restored,
-- or made anew. So each batch says on which basis it was made, and is refused when that is not the basis it meets.

-- +goose Up
INSERT INTO epochs (name) VALUES ('erasures');

COMMENT ON COLUMN epochs.name IS 'apps: rows of apps changed. erasures: rows of visitors or pages were removed, or became others''.';

-- Triggers, so that a DELETE typed into psql reaches the running instances as surely as any command. Who erases takes the locks of
-- the counters first: a batch that holds them has been answered before, one that waits for them meets the new basis.
-- +goose StatementBegin
CREATE FUNCTION erasure_raises_epoch() RETURNS trigger
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    UPDATE epochs SET value = value + 1 WHERE name = 'erasures';
    RETURN NULL;
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION erasure_raises_epoch() IS 'Raises the epoch of erasures, which makes running instances forget what they remember.';

-- Counting inserts visitors, and updates nothing but last_day: it fires neither of these.
CREATE TRIGGER visitors_erased
    AFTER DELETE OR TRUNCATE OR UPDATE OF page_id, rank, ip ON visitors
    FOR EACH STATEMENT EXECUTE FUNCTION erasure_raises_epoch();

CREATE TRIGGER pages_erased
    AFTER DELETE OR TRUNCATE OR UPDATE OF id, app_id, site_id, uri ON pages
    FOR EACH STATEMENT EXECUTE FUNCTION erasure_raises_epoch();

-- The epoch, and what tells this database from a restored or another one: a copy of the files needs a start of the server; a
-- restored dump makes the tables anew, or at least writes the epoch's row anew, which its xmin shows.
-- +goose StatementBegin
CREATE FUNCTION basis() RETURNS text
LANGUAGE plpgsql STABLE -- and not sql, which would plan it again for every batch
SET search_path = footfall, pg_temp
AS $$
BEGIN
    RETURN concat_ws('/', (SELECT concat_ws('/', e.value, e.xmin) FROM epochs AS e WHERE e.name = 'erasures'),
                          (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database()),
                          'visitors'::regclass::oid,
                          extract(epoch FROM pg_postmaster_start_time()));
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION basis() IS 'What an instance''s memory of the tables rests on: as long as this stays the same, what it remembers holds.';

-- +goose StatementBegin
CREATE FUNCTION basis_must_be(expected text) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = footfall, pg_temp
AS $$
BEGIN
    IF basis() IS DISTINCT FROM expected THEN
        RAISE EXCEPTION 'what was remembered of the tables no longer holds'
            USING ERRCODE = 'FF001', HINT = 'Forget it, and send the batch again.';
    END IF;
END
$$;
-- +goose StatementEnd

COMMENT ON FUNCTION basis_must_be(text) IS 'Fails with SQLSTATE FF001 when the basis is another one than expected.';

-- +goose Down
DROP FUNCTION basis_must_be(text);
DROP FUNCTION basis();
DROP TRIGGER pages_erased ON pages;
DROP TRIGGER visitors_erased ON visitors;
DROP FUNCTION erasure_raises_epoch();
COMMENT ON COLUMN epochs.name IS 'apps: rows of apps changed.';
DELETE FROM epochs WHERE name = 'erasures';
