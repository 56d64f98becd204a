// Package account manages the accounts that sign in to the dashboard, and their rights: to view apps, to change apps, or, for
// owners, to do everything. It stores passwords, sessions, and the links with which users choose a password.
//
// All state is in tables, so a change applies to every instance at once.
package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"time"

	"footfall/db"
	"footfall/visit"
)

// Lifetimes of sessions and links.
const (
	SessionLifetime = 30 * 24 * time.Hour // lifetime of a browser's session
	LinkLifetime    = 7 * 24 * time.Hour  // lifetime of a link for choosing a password
)

// Account is a signed-in account. A nil *Account means that the browser is not signed in, and has no rights.
type Account struct {
	ID      int32
	Name    string
	Owner   bool
	Session int32 // ID of the browser's session; 0: none, because a proxy sends the account's name with each request
	// Language is the account's language for pages; "" means the browser's language.
	Language string

	looks, changes []string // names of the apps that the account may view (looks) and change (changes)
}

// MayLook reports whether the account may see an app.
func (a *Account) MayLook(app string) bool {
	return a != nil && (a.Owner || slices.Contains(a.looks, app))
}

// MayChange reports whether the account may change an app.
func (a *Account) MayChange(app string) bool {
	return a != nil && (a.Owner || slices.Contains(a.changes, app))
}

// IsOwner reports whether the account may do everything.
func (a *Account) IsOwner() bool { return a != nil && a.Owner }

// Accounts manages the accounts of a database. It is safe for concurrent use.
type Accounts struct {
	db          *db.DB
	hashSlots   chan struct{}                          // limits concurrent hashing of passwords, which needs much memory
	deviceSlots chan struct{}                          // replaces hashSlots for browsers that have signed in before (see ForDevice)
	hash        func(password, salt []byte) (h []byte) // hashes a password: hashOfPassword, except in tests
	author      string                                 // recorded in the change history as the author of changes, such as "shell"
	deviceKey   []byte                                 // signs the cookies that identify browsers that have signed in before
}

// Open returns the accounts of a database.
func Open(d *db.DB) *Accounts {
	return &Accounts{db: d, hashSlots: make(chan struct{}, hashesAtOnce), deviceSlots: make(chan struct{}, hashesAtOnce), hash: hashOfPassword,
		author: "shell"}
}

// read runs f outside a transaction, so each statement of f that writes is committed separately. All statements together have the
// time limit of one statement. f runs a second time if the connection was dead (see db.DB.Read).
func read[T any](ctx context.Context, s *Accounts, f func(q *Queries) (T, error)) (found T, err error) {
	ctx, cancel := s.db.InTime(ctx)
	defer cancel()
	err = s.db.Read(ctx, func(shared *db.Queries) error {
		found, err = f(New(shared.Tx()))
		return err
	})
	return found, callerError(err)
}

func (s *Accounts) inTx(ctx context.Context, f func(q *Queries) error) error {
	ctx, cancel := s.db.InTime(ctx)
	defer cancel()
	return callerError(s.db.InTx(ctx, func(shared *db.Queries) error { return f(New(shared.Tx())) }))
}

// callerError returns nil, a visit.Error and db.ErrNoRows unchanged. Any other error means that the database does not respond, so
// callerError wraps it with visit.Unanswered.
func callerError(err error) error {
	if _, is := errors.AsType[*visit.Error](err); is || err == nil || errors.Is(err, db.ErrNoRows) {
		return err
	}
	return visit.Unanswered(err)
}

// newToken returns a random token for a session or a link, and its hash.
func newToken() (token string, hash []byte) { return newTokenOf(sha256.Size) }

func newTokenOf(bytes int) (token string, hash []byte) {
	random := make([]byte, bytes)
	_, _ = rand.Read(random) // returns no error: a failure ends the process
	token = base64.RawURLEncoding.EncodeToString(random)
	return token, hashOf(token)
}

func hashOf(token string) []byte {
	hash := sha256.Sum256([]byte(token))
	return hash[:]
}

// expiryBound returns the current time minus a lifetime. A session, link or cookie with this lifetime has expired if it was
// created before the returned time.
func expiryBound(long time.Duration) time.Time { return time.Now().Add(-long) }

// Exist reports whether the service has at least one account.
func (s *Accounts) Exist(ctx context.Context) (bool, error) {
	return read(ctx, s, func(q *Queries) (bool, error) { return q.AccountsAny(ctx) })
}

// FindBySession returns the account of the session with this token, or nil if the session does not exist or has expired.
func (s *Accounts) FindBySession(ctx context.Context, session string) (*Account, error) {
	if session == "" {
		return nil, nil
	}
	row, err := read(ctx, s, func(q *Queries) (AccountOfSessionRow, error) {
		return q.AccountOfSession(ctx, hashOf(session), expiryBound(SessionLifetime))
	})
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return &Account{ID: row.ID, Name: row.Name, Owner: row.Owner, Session: row.Session, Language: row.Language,
		looks: row.Looks, changes: row.Changes}, err
}

// FindOrAdd returns the account with a name that a trusted proxy has sent. If no account has this name, FindOrAdd adds an account
// that may view no apps. But if the service has no account at all, FindOrAdd adds none and returns nil.
func (s *Accounts) FindOrAdd(ctx context.Context, name string) (found *Account, err error) {
	shown, folded, err := readName(name)
	if err != nil {
		return nil, err
	}
	row, err := read(ctx, s, func(q *Queries) (AccountNamedRow, error) {
		row, err := q.AccountNamed(ctx, folded)
		if errors.Is(err, db.ErrNoRows) {
			if err := q.AccountAddNamed(ctx, shown, folded); err != nil {
				return row, err
			}
			row, err = q.AccountNamed(ctx, folded)
		}
		return row, err
	})
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return &Account{ID: row.ID, Name: row.Name, Owner: row.Owner, Language: row.Language, looks: row.Looks, changes: row.Changes}, err
}

// errWrongSignIn is returned both if the name does not exist and if the password is wrong, so that it does not reveal names.
var errWrongSignIn = visit.Errorf(visit.Forbidden, "", "the name or the password is wrong")

// SignIn creates a session if the name and the password are right. The duration of a call does not reveal whether the name
// exists.
func (s *Accounts) SignIn(ctx context.Context, name, password, browser string) (session string, err error) {
	row, err := s.check(ctx, name, password)
	if err != nil {
		return "", err
	}
	return read(ctx, s, func(q *Queries) (string, error) { return signIn(ctx, q, row.ID, row.Password, browser) })
}

// check returns the account with this name if the password is right. Otherwise it returns errWrongSignIn.
func (s *Accounts) check(ctx context.Context, name, password string) (row AccountNamedRow, err error) {
	if _, folded, err := readName(name); err == nil {
		row, err = read(ctx, s, func(q *Queries) (AccountNamedRow, error) { return q.AccountNamed(ctx, folded) })
		if err != nil && !errors.Is(err, db.ErrNoRows) {
			return row, err
		}
	}
	right, err := s.checkPassword(ctx, row.Password, password)
	if err == nil && !right {
		err = errWrongSignIn
	}
	return row, err
}

// IsFormerSession reports whether a session was created by Footfall 0.2.0, whose tokens are one byte shorter than those of
// signIn. Footfall 0.2.0 used the same name for the session cookie over http and https. Its last sessions expire SessionLifetime
// after the update from 0.2.0.
func IsFormerSession(session string) bool {
	return len(session) == base64.RawURLEncoding.EncodedLen(sha256.Size)
}

// signIn creates a session. password is the stored hash that the user's password matched. If another request has replaced this
// hash in the meantime, signIn returns errWrongSignIn.
func signIn(ctx context.Context, q *Queries, account int32, password, browser string) (session string, err error) {
	session, hash := newTokenOf(sha256.Size + 1)
	added, err := q.SessionAdd(ctx, SessionAddParams{Account: account, Password: password, Hash: hash, Browser: browser,
		Since: expiryBound(SessionLifetime)})
	if err == nil && added == 0 {
		return "", errWrongSignIn
	}
	return session, err
}

// errNotYours is returned if a user who changes the password enters a wrong old password, or if another request has just changed
// the password.
var errNotYours = visit.Errorf(visit.Forbidden, "old", "this is not your password")

// SetPassword replaces an account's password. It ends all sessions of the account, and returns the token of a new session for
// the user's browser.
func (s *Accounts) SetPassword(ctx context.Context, a *Account, old, new, browser string) (session string, err error) {
	row, err := s.check(ctx, a.Name, old)
	if errors.Is(err, errWrongSignIn) {
		return "", errNotYours
	} else if err != nil {
		return "", err
	}
	hashed, err := s.newPassword(ctx, a.Name, new)
	if err != nil {
		return "", err
	}
	err = s.inTx(ctx, func(q *Queries) (err error) {
		session, err = setPassword(ctx, q, AccountSetPasswordParams{ID: a.ID, Password: &hashed, Was: &row.Password}, browser)
		return err
	})
	return session, err
}

// setPassword sets an account's password, and also its name if the account has none. It ends all sessions of the account,
// deletes its link, and creates a session for the user's browser.
func setPassword(ctx context.Context, q *Queries, p AccountSetPasswordParams, browser string) (session string, err error) {
	set, err := q.AccountSetPassword(ctx, p)
	switch {
	case err == nil && set == 0 && p.Was != nil:
		err = errNotYours
	case err == nil && set == 0:
		err = errNoLink
	case err == nil:
		if err = q.SessionsEnd(ctx, p.ID, 0); err == nil {
			err = q.LinkEnd(ctx, p.ID)
		}
	}
	if err != nil {
		return "", err
	}
	if err := note(ctx, q, "", p.ID, "another password"); err != nil {
		return "", err
	}
	return signIn(ctx, q, p.ID, *p.Password, browser)
}

// Session is a browser's session.
type Session = SessionsOfRow

// Sessions lists an account's sessions, the last used first.
func (s *Accounts) Sessions(ctx context.Context, account int32) ([]Session, error) {
	return read(ctx, s, func(q *Queries) ([]Session, error) {
		return q.SessionsOf(ctx, account, expiryBound(SessionLifetime))
	})
}

// EndSession ends an account's session. It also succeeds if the session has already ended.
func (s *Accounts) EndSession(ctx context.Context, account, session int32) error {
	return s.inTx(ctx, func(q *Queries) error { return q.SessionEnd(ctx, account, session) })
}

// SetLanguage sets the language of an account's pages; "" means the browser's language. It adds no entry to the change history.
func (s *Accounts) SetLanguage(ctx context.Context, account int32, language string) error {
	return s.inTx(ctx, func(q *Queries) error {
		return q.AccountSetLanguage(ctx, language, account)
	})
}

// EndSessions ends all sessions of an account, except the session with the ID exceptID. If exceptID is 0, it ends all sessions.
func (s *Accounts) EndSessions(ctx context.Context, account, exceptID int32) error {
	return s.inTx(ctx, func(q *Queries) error { return q.SessionsEnd(ctx, account, exceptID) })
}
