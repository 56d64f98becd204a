-- Who signs in to the dashboard, and what they may do there.

-- +goose Up
CREATE TABLE accounts (
    id         integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner      boolean     NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    name       text,
    folded     text,
    password   text,
    language   text,

    CONSTRAINT accounts_names_are_different UNIQUE (folded),
    CONSTRAINT accounts_name_length         CHECK (char_length(name) BETWEEN 1 AND 100),
    CONSTRAINT accounts_name_is_folded      CHECK ((name IS NULL) = (folded IS NULL)),
    CONSTRAINT accounts_password_is_hashed  CHECK (password LIKE '$argon2id$%'),
    CONSTRAINT accounts_language_is_a_tag   CHECK (language ~ '^[a-z]{2,3}(-[A-Za-z]{2,8})?$')
);

COMMENT ON TABLE  accounts            IS 'People who look at the dashboard, and change what they may.';
COMMENT ON COLUMN accounts.id         IS 'The account''s number.';
COMMENT ON COLUMN accounts.owner      IS 'It may look at every app, and change everything.';
COMMENT ON COLUMN accounts.created_at IS 'When it was made.';
COMMENT ON COLUMN accounts.name       IS 'What is typed to sign in. Null: whoever follows its link chooses one.';
COMMENT ON COLUMN accounts.folded     IS 'The name as it is compared: without case, and what looks alike made alike.';
COMMENT ON COLUMN accounts.password   IS 'argon2id of the password, with the parameters and the salt. Null: it signs in by a proxy''s header, or its link was not followed yet.';
COMMENT ON COLUMN accounts.language   IS 'In which language it is shown pages, as a tag of BCP 47. Null: in that of the browser.';

CREATE TABLE account_apps (
    account_id integer NOT NULL REFERENCES accounts ON DELETE CASCADE,
    app_id     integer NOT NULL REFERENCES apps ON DELETE CASCADE,
    may_change boolean NOT NULL DEFAULT false,

    PRIMARY KEY (account_id, app_id)
);

CREATE INDEX account_apps_of_apps ON account_apps (app_id);

COMMENT ON TABLE  account_apps            IS 'The apps that an account which is no owner may look at.';
COMMENT ON COLUMN account_apps.account_id IS 'The account.';
COMMENT ON COLUMN account_apps.app_id     IS 'The app.';
COMMENT ON COLUMN account_apps.may_change IS 'It may change the app, too.';

CREATE TABLE account_sessions (
    id         integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id integer     NOT NULL REFERENCES accounts ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    used_at    timestamptz NOT NULL DEFAULT now(),
    hash       bytea       NOT NULL,
    browser    text        NOT NULL,

    CONSTRAINT account_sessions_are_different   UNIQUE (hash),
    CONSTRAINT account_sessions_hash_is_sha256  CHECK (octet_length(hash) = 32),
    CONSTRAINT account_sessions_browser_is_short CHECK (char_length(browser) <= 100)
);

CREATE INDEX account_sessions_of_accounts ON account_sessions (account_id);

COMMENT ON TABLE  account_sessions            IS 'Browsers that are signed in, for 30 days at most.';
COMMENT ON COLUMN account_sessions.id         IS 'The session''s number.';
COMMENT ON COLUMN account_sessions.account_id IS 'The account.';
COMMENT ON COLUMN account_sessions.created_at IS 'When it signed in.';
COMMENT ON COLUMN account_sessions.used_at    IS 'When it was used last, to about a minute.';
COMMENT ON COLUMN account_sessions.hash       IS 'SHA-256 of what the browser keeps, which has 256 random bits.';
COMMENT ON COLUMN account_sessions.browser    IS 'What the browser and its system are called.';

CREATE TABLE account_links (
    hash       bytea       PRIMARY KEY,
    account_id integer     REFERENCES accounts ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),

    CONSTRAINT account_links_one_an_account UNIQUE (account_id),
    CONSTRAINT account_links_hash_is_sha256 CHECK (octet_length(hash) = 32)
);

COMMENT ON TABLE  account_links            IS 'Links by which somebody chooses a password, each used once.';
COMMENT ON COLUMN account_links.hash       IS 'SHA-256 of what is secret in it, which has 256 random bits.';
COMMENT ON COLUMN account_links.account_id IS 'The account whose password it sets, within 7 days. Null: it makes the first account, and ends with that.';
COMMENT ON COLUMN account_links.created_at IS 'When it was made.';

-- +goose Down
DROP TABLE account_links;
DROP TABLE account_sessions;
DROP TABLE account_apps;
DROP TABLE accounts;
