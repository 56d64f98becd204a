package account

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"footfall/db"
	"footfall/visit"
)

// errNoLink is returned for unknown, used and expired links.
var errNoLink = visit.Errorf(visit.NotFound, "",
	"this link no longer works: it was used, replaced by another one, or has expired")

// NewStart creates a link for the first account and returns its token, or "" if an account exists.
func (s *Accounts) NewStart(ctx context.Context) (token string, err error) {
	token, hash := newToken()
	added, err := read(ctx, s, func(q *Queries) (int64, error) { return q.StartAdd(ctx, hash) })
	if added == 0 {
		token = ""
	}
	return token, err
}

// Link is a valid link with which a user chooses a password.
type Link struct {
	First bool   // the link creates the first account
	Name  string // the account's name; "": the user also chooses a name
}

// Link returns the link with this token, or an error of the kind visit.NotFound.
func (s *Accounts) Link(ctx context.Context, token string) (Link, error) {
	row, err := read(ctx, s, func(q *Queries) (LinkGetRow, error) {
		return q.LinkGet(ctx, hashOf(token), expiryBound(LinkLifetime))
	})
	if errors.Is(err, db.ErrNoRows) {
		err = errNoLink
	}
	return Link{row.Account == 0, row.Name}, err
}

// Follow uses a link: it sets the account's password, and also its name if the account has none. It returns the token of a
// session for the user's browser.
func (s *Accounts) Follow(ctx context.Context, token, name, password, browser string) (session string, err error) {
	link, err := s.Link(ctx, token)
	if err != nil {
		return "", err
	}
	set := AccountSetPasswordParams{}
	if link.Name == "" {
		shown, folded, err := readName(name)
		if err != nil {
			return "", err
		}
		set.Name, set.Folded = &shown, &folded
		link.Name = shown
	}
	hashed, err := s.newPassword(ctx, link.Name, password)
	if err != nil {
		return "", err
	}
	set.Password = &hashed
	err = s.inTx(ctx, func(q *Queries) (err error) {
		if link.First {
			session, err = createFirstAccount(ctx, q, hashOf(token), set, browser)
			return err
		}
		if set.ID, err = q.LinkTake(ctx, hashOf(token), expiryBound(LinkLifetime)); errors.Is(err, db.ErrNoRows) {
			return errNoLink
		} else if err != nil {
			return err
		}
		session, err = setPassword(ctx, q, set, browser)
		return err
	})
	if db.FaultOf(errors.Unwrap(err)) == db.FaultData { // violates the unique index on names: another account has this name
		err = nameTakenError(name)
	}
	return session, err
}

func nameTakenError(name string) error {
	return visit.Errorf(visit.Invalid, "name", "%.100q already belongs to another account: choose another name", name)
}

// createFirstAccount creates the first account, which is an owner. It also deletes all links that create a first account.
func createFirstAccount(ctx context.Context, q *Queries, hash []byte, p AccountSetPasswordParams, browser string) (session string,
	err error,
) {
	starts, err := q.StartsTake(ctx)
	if err != nil {
		return "", err
	}
	there, err := q.AccountsAny(ctx)
	if err != nil {
		return "", err
	}
	if there || !slices.ContainsFunc(starts, func(start []byte) bool { return bytes.Equal(start, hash) }) {
		return "", errNoLink
	}
	id, err := q.AccountAdd(ctx, AccountAddParams{Owner: true, Name: p.Name, Folded: p.Folded, Password: p.Password})
	if err != nil {
		return "", err
	}
	if err := note(ctx, q, "", id, ""); err != nil {
		return "", err
	}
	return signIn(ctx, q, id, *p.Password, browser)
}
