-- Replaces the addresses that identify an app's visitors with hashes, in the transaction of a command that has locked all
-- counters of the app. The key of the hashes is not in the database. So the command reads the addresses, computes the hashes,
-- and passes the hashes to note_hashes().

-- Lists the visitors of sites only, because each visitor of a page is also a visitor of its site.
CREATE FUNCTION list_addresses(app integer) RETURNS bigint
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    CREATE TEMPORARY TABLE addresses_hashed (ip inet NOT NULL, hash inet NOT NULL, entry integer NOT NULL) ON COMMIT DROP;
    CREATE TEMPORARY TABLE addresses_listed ON COMMIT DROP AS
    SELECT row_number() OVER () AS place, d.ip
    FROM (
        SELECT DISTINCT v.ip
        FROM pages AS p
        JOIN visitors AS v ON v.page_id = p.id
        WHERE p.app_id = app
          AND p.site_id IS NULL
    ) AS d;
    ALTER TABLE addresses_listed ADD PRIMARY KEY (place);
    RETURN (SELECT count(*) FROM addresses_listed);
END
$$;

COMMENT ON FUNCTION list_addresses(integer) IS 'Lists the addresses of an app''s visitors for this transaction and returns their number.';

CREATE FUNCTION listed_addresses(after bigint, most integer) RETURNS SETOF inet
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT l.ip
    FROM addresses_listed AS l
    WHERE l.place > after
      AND l.place <= after + most;
END
$$;

COMMENT ON FUNCTION listed_addresses(bigint, integer) IS 'The addresses from list_addresses() with the places after + 1 to after + most.';

CREATE FUNCTION note_hashes(ips inet[], hashes inet[]) RETURNS void
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
AS $$
BEGIN
    INSERT INTO addresses_hashed (ip, hash, entry)
    SELECT h.ip, h.hash, sketch_entry(sha256(inet_send(h.hash)))
    FROM unnest(ips, hashes) AS h (ip, hash);
END
$$;

COMMENT ON FUNCTION note_hashes(inet[], inet[]) IS 'Stores the hashes of some of the listed addresses.';

-- Deletes the current visitors (table here) instead of hashing them, because they are recorded again within minutes.
CREATE FUNCTION hash_visitors(app integer) RETURNS integer
LANGUAGE plpgsql
SET search_path = footfall, pg_temp
SET work_mem = '64MB'
SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off -- the rows of a page are adjacent in an index, which also skips those of other apps
AS $$
DECLARE
    kept_from       integer := visits_kept_from(app);
    of_visitors     bigint; -- number of rows
    of_visits       bigint;
    hashed_visitors bigint;
    hashed_visits   bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM apps AS a WHERE a.id = app AND a.visitor = 'address') THEN
        RAISE EXCEPTION 'app % does not distinguish visitors by address', app USING ERRCODE = '22023';
    END IF;
    SELECT count(*)
    INTO of_visitors
    FROM pages AS p
    JOIN visitors AS v ON v.page_id = p.id
    WHERE p.app_id = app;
    SELECT count(*)
    INTO of_visits
    FROM pages AS p
    JOIN visits AS v ON v.page_id = p.id
    WHERE p.app_id = app;
    ANALYZE addresses_hashed;
    UPDATE visitors AS v
    SET ip = h.hash
    FROM pages AS p, addresses_hashed AS h
    WHERE p.app_id = app
      AND v.page_id = p.id
      AND h.ip = v.ip;
    GET DIAGNOSTICS hashed_visitors = ROW_COUNT;
    DELETE FROM sketches AS s
    USING pages AS p
    WHERE p.app_id = app
      AND s.page_id = p.id
      AND s.day_id >= kept_from;
    -- Makes the sketches like make_sketches(), but in the same pass as the hashes are written. note_hashes() has computed the
    -- entry of each hash once for all rows of a visitor.
    WITH hashed AS (
        UPDATE visits AS v
        SET ip = h.hash
        FROM pages AS p, addresses_hashed AS h
        WHERE p.app_id = app
          AND v.page_id = p.id
          AND h.ip = v.ip
        RETURNING v.page_id, v.day_id, h.entry
    ), highest AS (
        SELECT h.page_id, h.day_id, max(h.entry) AS entry
        FROM hashed AS h
        WHERE h.day_id IN (SELECT c.day_id FROM closed_days AS c WHERE c.day_id >= kept_from)
        GROUP BY h.page_id, h.day_id, h.entry / 64
    ), sketched AS (
        INSERT INTO sketches (page_id, day_id, entries)
        SELECT h.page_id, h.day_id, array_agg(h.entry ORDER BY h.entry)
        FROM highest AS h
        GROUP BY h.page_id, h.day_id
    )
    SELECT count(*)
    INTO hashed_visits
    FROM hashed;
    IF (hashed_visitors, hashed_visits) <> (of_visitors, of_visits) THEN
        RAISE EXCEPTION 'visitors of a page of app % are missing at its site: run footfall verify', app USING ERRCODE = 'XX001';
    END IF;
    DELETE FROM here AS h
    USING pages AS p
    WHERE p.app_id = app
      AND h.site_id = p.id;
    PERFORM set_config('footfall.hashed', concat_ws(' ', app, pg_current_xact_id()), true);
    IF EXISTS (SELECT FROM pages AS p JOIN sketches AS s ON s.page_id = p.id WHERE p.app_id = app AND s.day_id < kept_from) THEN
        RETURN kept_from;
    END IF;
    RETURN 0;
END
$$;

COMMENT ON FUNCTION hash_visitors(integer) IS 'Replaces the addresses of an app''s visitors with the stored hashes, and makes new sketches of days with kept rows. Returns the first such day, or 0 if there are no earlier sketches.';

REVOKE ALL ON FUNCTION list_addresses(integer), listed_addresses(bigint, integer), note_hashes(inet[], inet[]), hash_visitors(integer) FROM PUBLIC;
