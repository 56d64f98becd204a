-- Keys by which programs change apps, what receivers of webhooks have answered, and keys of webhooks of
-- several databases that have one secret.

-- +goose Up
ALTER TABLE keys DROP CONSTRAINT keys_scopes_are_known;
ALTER TABLE keys ADD CONSTRAINT keys_scopes_are_known CHECK (cardinality(scopes) > 0 AND scopes <@ '{count,assert,read,admin}');

COMMENT ON COLUMN keys.scopes IS 'count: count visits. assert: the same, and say who came. read: ask about a visitor, and for reports. admin: change the app.';

-- Beside keys, each of which an instance of an earlier version takes for one of an app.
CREATE TABLE admin_keys (
    id         integer     GENERATED ALWAYS AS IDENTITY,
    created_at timestamptz NOT NULL DEFAULT now(),
    used_at    timestamptz,
    revoked_at timestamptz,
    name       text        NOT NULL,
    hash       bytea       NOT NULL,

    CONSTRAINT admin_keys_pkey           PRIMARY KEY (id),
    CONSTRAINT admin_keys_name_is_unique UNIQUE (name),
    CONSTRAINT admin_keys_hash_is_unique UNIQUE (hash),
    CONSTRAINT admin_keys_hash_is_sha256 CHECK (octet_length(hash) = 32)
);

COMMENT ON TABLE  admin_keys            IS 'Keys with which programs add, change and delete all apps, and accounts. The key itself is stored nowhere.';
COMMENT ON COLUMN admin_keys.id         IS 'The key''s number.';
COMMENT ON COLUMN admin_keys.created_at IS 'When it was made.';
COMMENT ON COLUMN admin_keys.used_at    IS 'When it was used last.';
COMMENT ON COLUMN admin_keys.revoked_at IS 'Since when it opens nothing.';
COMMENT ON COLUMN admin_keys.name       IS 'The beginning of the key, by which people speak of it.';
COMMENT ON COLUMN admin_keys.hash       IS 'SHA-256 of the whole key, which has 256 random bits.';

ALTER TABLE webhooks ADD COLUMN answers text[] NOT NULL DEFAULT '{}';
-- Without a default: an instance of an earlier version adds webhooks, too, whose key it makes of the number alone.
ALTER TABLE webhooks ADD COLUMN salt bytea CONSTRAINT webhooks_salt_is_16_bytes CHECK (octet_length(salt) = 16);

COMMENT ON COLUMN webhooks.answers IS 'What the receiver has answered to the last calls, or why it was not reached, each behind its time: the last first.';
COMMENT ON COLUMN webhooks.salt    IS 'Of what the key of its signatures is made beside the secret and the number, since another database with that secret has the same numbers; null: of these two alone, as in 0.1.0.';

-- +goose Down
ALTER TABLE webhooks DROP COLUMN salt CASCADE;
ALTER TABLE webhooks DROP COLUMN answers CASCADE;
DROP TABLE admin_keys;
DELETE FROM keys WHERE scopes = '{admin}';
UPDATE keys SET scopes = array_remove(scopes, 'admin') WHERE 'admin' = ANY (scopes);
ALTER TABLE keys DROP CONSTRAINT keys_scopes_are_known;
ALTER TABLE keys ADD CONSTRAINT keys_scopes_are_known CHECK (cardinality(scopes) > 0 AND scopes <@ '{count,assert,read}');
