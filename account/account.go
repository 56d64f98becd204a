// Package account is who people are that sign in to the dashboard, and what they may do there: look
// at apps, change them, or, as owners, everything. It keeps passwords, sessions and links.
//
// The tables are its only memory: what is changed holds at once, for every instance.
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

// For how long things hold.
const (
	SessionFor = 30 * 24 * time.Hour // a browser that has signed in
	LinkFor    = 7 * 24 * time.Hour  // a link to an account
)

// Account is somebody who is signed in. Nil is nobody, who may do nothing.
type Account struct {
	ID      int32
	Name    string
	Owner   bool
	Session int32 // by which they are signed in; 0: a proxy names them with each request
	// Language is that in which they want pages; "": that of the browser.
	Language string

	looks, changes []string // names of apps
}

// MayLook reports whether the account may look at an app.
func (a *Account) MayLook(app string) bool {
	return a != nil && (a.Owner || slices.Contains(a.looks, app))
}

// MayChange reports whether the account may change an app.
func (a *Account) MayChange(app string) bool {
	return a != nil && (a.Owner || slices.Contains(a.changes, app))
}

// IsOwner reports whether the account may do everything.
func (a *Account) IsOwner() bool { return a != nil && a.Owner }

// Accounts are all accounts of a database. They are safe for concurrent use.
type Accounts struct {
	db        *db.DB
	places    chan struct{}                          // for passwords that are hashed at once
	reserved  chan struct{}                          // places for known browsers
	hash      func(password, salt []byte) (h []byte) // of a password
	who       string                                 // changes something
	deviceKey []byte                                 // signs the cookies of known browsers, with the account's password
}

// Open returns the accounts of a database.
func Open(d *db.DB) *Accounts {
	return &Accounts{db: d, places: make(chan struct{}, hashesAtOnce), reserved: make(chan struct{}, hashesAtOnce), hash: hashOfPassword,
		who: "shell"}
}

// read asks for a caller, who waits no longer than one statement may take.
func read[T any](ctx context.Context, s *Accounts, f func(q *Queries) (T, error)) (found T, err error) {
	ctx, cancel := s.db.InTime(ctx)
	defer cancel()
	err = s.db.Read(ctx, func(shared *db.Queries) error {
		found, err = f(New(shared.Tx()))
		return err
	})
	return found, told(err)
}

func (s *Accounts) inTx(ctx context.Context, f func(q *Queries) error) error {
	ctx, cancel := s.db.InTime(ctx)
	defer cancel()
	return told(s.db.InTx(ctx, func(shared *db.Queries) error { return f(New(shared.Tx())) }))
}

// told is an error as callers are told it.
func told(err error) error {
	if _, is := errors.AsType[*visit.Error](err); is || err == nil || errors.Is(err, db.ErrNoRows) {
		return err
	}
	return visit.Unanswered(err)
}

// newToken makes what a browser keeps, or what is secret of a link, and its hash.
func newToken() (token string, hash []byte) { return newTokenOf(sha256.Size) }

func newTokenOf(bytes int) (token string, hash []byte) {
	random := make([]byte, bytes)
	_, _ = rand.Read(random) // never fails: it would end the process
	token = base64.RawURLEncoding.EncodeToString(random)
	return token, hashOf(token)
}

func hashOf(token string) []byte {
	hash := sha256.Sum256([]byte(token))
	return hash[:]
}

// ago is when what ends now began that holds for so long.
func ago(long time.Duration) time.Time { return time.Now().Add(-long) }

// Any reports whether there is an account.
func (s *Accounts) Any(ctx context.Context) (bool, error) {
	return read(ctx, s, func(q *Queries) (bool, error) { return q.AccountsAny(ctx) })
}

// Of returns the account of a session; nil where there is none, or none any more.
func (s *Accounts) Of(ctx context.Context, session string) (*Account, error) {
	if session == "" {
		return nil, nil
	}
	row, err := read(ctx, s, func(q *Queries) (AccountOfSessionRow, error) {
		return q.AccountOfSession(ctx, hashOf(session), ago(SessionFor))
	})
	if errors.Is(err, db.ErrNoRows) {
		return nil, nil
	}
	return &Account{ID: row.ID, Name: row.Name, Owner: row.Owner, Session: row.Session, Language: row.Language,
		looks: row.Looks, changes: row.Changes}, err
}

// Named returns the account of a name that a trusted proxy says, and makes one without apps where
// there is none; nil where it would be the first.
func (s *Accounts) Named(ctx context.Context, name string) (found *Account, err error) {
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

// errWrong is the answer to a name that is not there, and to a wrong password.
var errWrong = visit.Errorf(visit.Forbidden, "", "this name and password do not belong together")

// SignIn gives a browser a session, if the name and the password are right. What is done does not
// tell whether there is such a name.
func (s *Accounts) SignIn(ctx context.Context, name, password, browser string) (session string, err error) {
	row, err := s.check(ctx, name, password)
	if err != nil {
		return "", err
	}
	return read(ctx, s, func(q *Queries) (string, error) { return signIn(ctx, q, row.ID, row.Password, browser) })
}

// check returns the account of a name if the password is its own, or errWrong.
func (s *Accounts) check(ctx context.Context, name, password string) (row AccountNamedRow, err error) {
	if _, folded, err := readName(name); err == nil {
		row, err = read(ctx, s, func(q *Queries) (AccountNamedRow, error) { return q.AccountNamed(ctx, folded) })
		if err != nil && !errors.Is(err, db.ErrNoRows) {
			return row, err
		}
	}
	right, err := s.checkPassword(ctx, row.Password, password)
	if err == nil && !right {
		err = errWrong
	}
	return row, err
}

// IsFormerSession reports whether a session was made by Footfall 0.2.0, whose cookies are named alike over http and https. Its
// sessions have a byte less than those of signIn, and end after SessionFor.
func IsFormerSession(session string) bool {
	return len(session) == base64.RawURLEncoding.EncodedLen(sha256.Size)
}

// signIn makes a session of an account that still has a password.
func signIn(ctx context.Context, q *Queries, account int32, password, browser string) (session string, err error) {
	session, hash := newTokenOf(sha256.Size + 1)
	added, err := q.SessionAdd(ctx, SessionAddParams{Account: account, Password: password, Hash: hash, Browser: browser,
		Since: ago(SessionFor)})
	if err == nil && added == 0 {
		return "", errWrong
	}
	return session, err
}

// errNotYours is the answer to a wrong password of who is signed in, and to one that was changed at this moment.
var errNotYours = visit.Errorf(visit.Forbidden, "old", "this is not your password")

// SetPassword gives an account that has a password another one. All its sessions end, and the browser gets a new one.
func (s *Accounts) SetPassword(ctx context.Context, a *Account, old, new, browser string) (session string, err error) {
	row, err := s.check(ctx, a.Name, old)
	if errors.Is(err, errWrong) {
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

// setPassword sets the password of an account, and its name where it has none, ends its sessions and a
// link to it, and gives the browser a new session.
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

// Session is a browser that is signed in.
type Session = SessionsOfRow

// Sessions lists the sessions of an account, the last used first.
func (s *Accounts) Sessions(ctx context.Context, account int32) ([]Session, error) {
	return read(ctx, s, func(q *Queries) ([]Session, error) {
		return q.SessionsOf(ctx, account, ago(SessionFor))
	})
}

// EndSession ends a session of an account; one that is over already ends as well.
func (s *Accounts) EndSession(ctx context.Context, account, session int32) error {
	return s.inTx(ctx, func(q *Queries) error { return q.SessionEnd(ctx, account, session) })
}

// SetLanguage says in which language an account is shown pages; "": in that of the browser. It is nobody's matter
// but its own, and noted nowhere.
func (s *Accounts) SetLanguage(ctx context.Context, account int32, language string) error {
	return s.inTx(ctx, func(q *Queries) error {
		return q.AccountSetLanguage(ctx, language, account)
	})
}

// EndSessions ends all sessions of an account but for one (0: all).
func (s *Accounts) EndSessions(ctx context.Context, account, but int32) error {
	return s.inTx(ctx, func(q *Queries) error { return q.SessionsEnd(ctx, account, but) })
}
