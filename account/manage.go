package account

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"footfall/db"
	"footfall/visit"
)

// Right is an account's permission for one app.
type Right string

// The rights.
const (
	Look   Right = "look"
	Change Right = "change" // includes Look
	None   Right = "none"
)

// Rights are changes to an account's rights. If Owner is nil, or if Apps does not contain an app, then
// this right stays unchanged.
type Rights struct {
	Owner *bool
	Apps  map[string]Right
}

// Entry is an account in the list of accounts.
type Entry struct {
	ID        int32
	Name      string // "": not chosen yet, because nobody has used the account's link
	Owner     bool
	Used      *time.Time // last use of a session; nil: the account has no session
	LinkUntil *time.Time // when the account's link expires; nil: it has no link
	Password  bool       // whether the account has a password
	Apps      map[string]Right
}

// AppsWith returns the names of the apps for which the account has one of these rights.
func (e *Entry) AppsWith(rights ...Right) []string {
	names := []string{}
	for name, has := range e.Apps {
		if slices.Contains(rights, has) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// List lists all accounts, owners first, then by name.
func (s *Accounts) List(ctx context.Context) (all []Entry, err error) {
	rows, err := read(ctx, s, func(q *Queries) ([]AccountsListRow, error) { return q.AccountsList(ctx) })
	for _, row := range rows {
		e := Entry{ID: row.ID, Name: row.Name, Owner: row.Owner, Password: row.HasPassword, Apps: map[string]Right{}}
		if row.UsedAt.Unix() > 0 {
			e.Used = &row.UsedAt
		}
		if row.LinkAt != nil {
			until := row.LinkAt.Add(LinkLifetime)
			e.LinkUntil = &until
		}
		for _, app := range row.Looks {
			e.Apps[app] = Look
			if slices.Contains(row.Changes, app) {
				e.Apps[app] = Change
			}
		}
		all = append(all, e)
	}
	return all, err
}

// Find returns the account with this name, or with this ID (such as "7" or "#7").
func (s *Accounts) Find(ctx context.Context, name string) (Entry, error) {
	all, err := s.List(ctx)
	if err != nil {
		return Entry{}, err
	}
	_, folded, _ := readName(name)
	at := slices.IndexFunc(all, func(e Entry) bool {
		_, its, _ := readName(e.Name)
		return folded != "" && its == folded || strconv.Itoa(int(e.ID)) == strings.TrimPrefix(name, "#")
	})
	if at < 0 {
		return Entry{}, visit.Errorf(visit.NotFound, "account",
			"there is no account %.100q: `footfall account list` shows all accounts", name)
	}
	return all[at], nil
}

// Add adds an account. It returns the account's ID, and the token of a link with which a user chooses the password. If name is
// "", the user also chooses the name.
func (s *Accounts) Add(ctx context.Context, name string, r Rights) (id int32, token string, err error) {
	p := AccountAddParams{}
	if name != "" {
		shown, folded, err := readName(name)
		if err != nil {
			return 0, "", err
		}
		p.Name, p.Folded = &shown, &folded
	}
	token, hash := newToken()
	err = s.inTx(ctx, func(q *Queries) error {
		there, err := q.AccountsAny(ctx)
		if err != nil {
			return err
		}
		if !there {
			return visit.Errorf(visit.Invalid, "account",
				"there is no account yet, and the first one is created in a browser: `footfall start-link` prints the address")
		}
		if id, err = q.AccountAdd(ctx, p); errors.Is(err, db.ErrNoRows) {
			return nameTakenError(name)
		} else if err != nil {
			return err
		}
		if err := setRights(ctx, q, id, r); err != nil {
			return err
		}
		if err := note(ctx, q, s.author, id, ""); err != nil {
			return err
		}
		_, err = q.LinkSet(ctx, hash, id)
		return err
	})
	return id, token, err
}

// Set changes an account's rights.
func (s *Accounts) Set(ctx context.Context, id int32, r Rights) error {
	return s.inTx(ctx, func(q *Queries) error {
		if r.Owner != nil && !*r.Owner {
			if err := checkOwners(ctx, q, id); err != nil {
				return err
			}
		}
		return s.recordChange(ctx, q, id, func() error { return setRights(ctx, q, id, r) })
	})
}

func setRights(ctx context.Context, q *Queries, id int32, r Rights) error {
	if r.Owner != nil {
		if err := q.AccountSetOwner(ctx, *r.Owner, id); err != nil {
			return err
		}
	}
	for app, right := range r.Apps {
		if right == None {
			if err := q.AccountAppRemove(ctx, id, app); err != nil {
				return err
			}
			continue
		}
		set, err := q.AccountAppSet(ctx, AccountAppSetParams{Account: id, App: app, MayChange: right == Change})
		if err != nil {
			return err
		}
		if set == 0 {
			return visit.Errorf(visit.NotFound, "app", "there is no app %.64q", app)
		}
	}
	return nil
}

// checkOwners returns an error if the account with this ID is an owner, and no other owner can sign in.
func checkOwners(ctx context.Context, q *Queries, id int32) error {
	owners, err := q.AccountsLockOwners(ctx)
	isOwner, others := false, false
	for _, o := range owners {
		isOwner, others = isOwner || o.ID == id, others || o.ID != id && o.SignsIn
	}
	if err == nil && isOwner && !others {
		return visit.Errorf(visit.Invalid, "account",
			"it is the only owner, and nobody else could change anything: make another account an owner first")
	}
	return err
}

// Remove removes an account and ends its sessions.
func (s *Accounts) Remove(ctx context.Context, id int32) error {
	return s.inTx(ctx, func(q *Queries) error {
		if err := checkOwners(ctx, q, id); err != nil {
			return err
		}
		return s.recordChange(ctx, q, id, func() error { return q.AccountDelete(ctx, id) })
	})
}

// NewLink creates a link for choosing an account's password, and returns the link's token. The account's previous link no longer
// works.
func (s *Accounts) NewLink(ctx context.Context, id int32) (token string, err error) {
	token, hash := newToken()
	return token, s.inTx(ctx, func(q *Queries) error {
		set, err := q.LinkSet(ctx, hash, id)
		if err == nil && set == 0 {
			err = visit.Errorf(visit.NotFound, "account", "there is no account with this number: it was removed")
		}
		if err != nil {
			return err
		}
		return note(ctx, q, s.author, id, "a link")
	})
}
