-- Accounts of the users who may sign in, with their rights, sessions and links.

-- name: AccountsAny :one
-- Returns whether any account exists. Accounts of invited users who have not signed in yet count,
-- too.
SELECT EXISTS (SELECT FROM accounts);

-- name: AccountOfSession :one
-- Returns the account of a session, and the apps that the account may view and change. No row if the
-- session has ended or expired. Updates the session's time of last use at most once a minute.
WITH used AS (
    UPDATE account_sessions AS s
    SET used_at = now()
    WHERE s.hash = @hash
      AND s.used_at < now() - interval '1 minute'
)
SELECT a.id, a.owner, coalesce(a.name, '') AS name, coalesce(a.language, '') AS language, s.id AS session,
       array(SELECT p.name FROM account_apps AS m JOIN apps AS p ON p.id = m.app_id WHERE m.account_id = a.id)::text[] AS looks,
       array(SELECT p.name FROM account_apps AS m JOIN apps AS p ON p.id = m.app_id WHERE m.account_id = a.id AND m.may_change)::text[] AS changes
FROM account_sessions AS s
JOIN accounts AS a ON a.id = s.account_id
WHERE s.hash = @hash
  AND s.created_at > @since;

-- name: AccountNamed :one
-- Returns the account with this name. @folded is the name in the form for comparisons.
SELECT a.id, a.owner, coalesce(a.name, '') AS name, coalesce(a.language, '') AS language, coalesce(a.password, '') AS password,
       array(SELECT p.name FROM account_apps AS m JOIN apps AS p ON p.id = m.app_id WHERE m.account_id = a.id)::text[] AS looks,
       array(SELECT p.name FROM account_apps AS m JOIN apps AS p ON p.id = m.app_id WHERE m.account_id = a.id AND m.may_change)::text[] AS changes
FROM accounts AS a
WHERE a.folded = @folded::text;

-- name: AccountsList :many
-- Lists all accounts, owners first, in order of name. used_at is the last use of any session of the
-- account, or 1970 if it has no session.
SELECT a.id, a.owner, coalesce(a.name, '') AS name, (a.password IS NOT NULL)::boolean AS has_password,
       coalesce((SELECT max(s.used_at) FROM account_sessions AS s WHERE s.account_id = a.id), 'epoch')::timestamptz AS used_at,
       l.created_at AS link_at,
       array(SELECT p.name FROM account_apps AS m JOIN apps AS p ON p.id = m.app_id WHERE m.account_id = a.id)::text[] AS looks,
       array(SELECT p.name FROM account_apps AS m JOIN apps AS p ON p.id = m.app_id WHERE m.account_id = a.id AND m.may_change)::text[] AS changes
FROM accounts AS a
LEFT JOIN account_links AS l ON l.account_id = a.id
ORDER BY NOT a.owner, a.folded, a.id;

-- name: AccountAdd :one
-- Adds an account. No row if another account has the name.
INSERT INTO accounts (owner, name, folded, password)
VALUES (@owner, @name, @folded, @password)
ON CONFLICT (folded) DO NOTHING
RETURNING id;

-- name: AccountAddNamed :exec
-- Adds an account without apps for a user whom a proxy has signed in. Records this in the change
-- history. Does nothing if there is no account yet, or if an account already has this name.
WITH added AS (
    INSERT INTO accounts (name, folded)
    SELECT @name::text, @folded::text
    WHERE EXISTS (SELECT FROM accounts)
    ON CONFLICT (folded) DO NOTHING
    RETURNING name
)
INSERT INTO changes (who, what, was, is_now)
SELECT 'account ' || a.name, 'account', '', a.name || ': nothing'
FROM added AS a;

-- name: AccountSetPassword :execrows
-- Sets the hash of an account's password. Also sets the account's name if the account has none. Changes
-- nothing if the account does not exist, or if @was is neither null nor the account's current hash.
UPDATE accounts
SET password = @password,
    name     = coalesce(name, @name),
    folded   = coalesce(folded, @folded)
WHERE id = @id
  AND (sqlc.narg('was')::text IS NULL OR password = sqlc.narg('was'));

-- name: AccountSetLanguage :exec
-- Sets the language of an account's pages; '' means the browser's language.
UPDATE accounts
SET language = nullif(@language::text, '')
WHERE id = @id;

-- name: AccountSetOwner :exec
-- Makes an account an owner, or removes this right from it.
UPDATE accounts
SET owner = @owner
WHERE id = @id;

-- name: AccountsLockOwners :many
-- Locks the owners' accounts until the transaction ends. Returns for each whether it can sign in,
-- with a password or through a proxy. An owner with a link but without a password has not used the
-- link yet, and cannot sign in.
SELECT a.id,
       (a.name IS NOT NULL
        AND (a.password IS NOT NULL OR NOT EXISTS (SELECT FROM account_links AS l WHERE l.account_id = a.id)))::boolean AS signs_in
FROM accounts AS a
WHERE a.owner
ORDER BY a.id
FOR UPDATE;

-- name: AccountDelete :exec
-- Deletes an account with its sessions and links.
DELETE FROM accounts
WHERE id = @id;

-- name: AccountAppSet :execrows
-- Allows an account to view an app, and also to change it if @may_change is true. No row if the app
-- does not exist or is being deleted.
INSERT INTO account_apps (account_id, app_id, may_change)
SELECT @account::integer, p.id, @may_change::boolean
FROM apps AS p
WHERE p.name = @app
  AND p.deleted_at IS NULL
ON CONFLICT (account_id, app_id) DO UPDATE SET may_change = excluded.may_change;

-- name: AccountAppRemove :exec
-- Removes an account's access to an app.
DELETE FROM account_apps AS m
USING apps AS p
WHERE m.account_id = @account
  AND p.id = m.app_id
  AND p.name = @app;

-- name: SessionAdd :execrows
-- Adds the session of a browser to an account. No row if @password is no longer the stored hash of
-- the account's password. Also deletes the expired sessions of all accounts.
WITH over AS (
    DELETE FROM account_sessions AS s
    WHERE s.created_at < @since
)
INSERT INTO account_sessions (account_id, hash, browser)
SELECT a.id, @hash, @browser
FROM accounts AS a
WHERE a.id = @account
  AND a.password = @password::text;

-- name: PasswordOfSession :one
-- Returns the account of a session, and the stored hash of the account's password. No row if the
-- session has ended.
SELECT a.id, coalesce(a.password, '') AS password
FROM account_sessions AS s
JOIN accounts AS a ON a.id = s.account_id
WHERE s.hash = @hash;

-- name: SessionsOf :many
-- Lists the sessions of an account that have not expired, the last used first.
SELECT id, created_at, used_at, browser
FROM account_sessions
WHERE account_id = @account
  AND created_at > @since
ORDER BY used_at DESC, id DESC;

-- name: SessionEnd :exec
-- Ends a session of an account.
DELETE FROM account_sessions
WHERE account_id = @account
  AND id = @id;

-- name: SessionsEnd :exec
-- Ends all sessions of an account except the one with the id @but. If @but is 0, ends all of them.
DELETE FROM account_sessions
WHERE account_id = @account
  AND id <> @but;

-- name: StartAdd :execrows
-- Adds a link that creates the first account. No row if an account already exists.
INSERT INTO account_links (hash)
SELECT @hash::bytea
WHERE NOT EXISTS (SELECT FROM accounts);

-- name: LinkSet :execrows
-- Adds a link with which a user chooses an account's password. It replaces the account's previous
-- link. No row if the account does not exist.
INSERT INTO account_links (hash, account_id)
SELECT @hash::bytea, a.id
FROM accounts AS a
WHERE a.id = @account
FOR KEY SHARE
ON CONFLICT (account_id) DO UPDATE SET hash = excluded.hash, created_at = now();

-- name: LinkEnd :exec
-- Deletes the link of an account, if there is one.
DELETE FROM account_links
WHERE account_id = @account::integer;

-- name: LinkGet :one
-- Returns the account that a valid link belongs to, and the account's name. For a link that creates
-- the first account, account is 0.
SELECT coalesce(l.account_id, 0)::integer AS account, coalesce(a.name, '') AS name
FROM account_links AS l
LEFT JOIN accounts AS a ON a.id = l.account_id
WHERE l.hash = @hash
  AND (l.account_id IS NULL AND NOT EXISTS (SELECT FROM accounts) OR l.created_at > @since AND l.account_id IS NOT NULL);

-- name: LinkTake :one
-- Uses up an account's link by deleting it: a link works only once. No row if the link is not valid.
DELETE FROM account_links
WHERE hash = @hash
  AND account_id IS NOT NULL
  AND created_at > @since
RETURNING account_id::integer;

-- name: StartsTake :many
-- Deletes all links that create the first account, and returns their hashes. If two transactions do
-- this at the same time, the second one waits for the first, and gets no row.
DELETE FROM account_links
WHERE account_id IS NULL
RETURNING hash;

-- name: AccountTexts :many
-- Returns an account's name and rights as texts for the change history. No row if the account does
-- not exist.
SELECT coalesce(a.name, '#' || a.id)::text AS name,
       CASE WHEN a.owner THEN 'everything'
            ELSE coalesce((SELECT string_agg(CASE WHEN m.may_change THEN 'change ' ELSE 'look at ' END || p.name, ', ' ORDER BY p.name)
                           FROM account_apps AS m
                           JOIN apps AS p ON p.id = m.app_id
                           WHERE m.account_id = a.id), 'nothing')
       END::text AS may
FROM accounts AS a
WHERE a.id = @id;
