package account

import (
	"cmp"
	"context"

	"footfall/db"
)

// As returns the accounts as somebody else changes them than the shell: an account or a key, by its
// name.
func (s *Accounts) As(who string) *Accounts {
	as := *s
	as.who = who
	return &as
}

// said is an account as changes tell of it: its name, and what it may do; "" where it is gone.
func said(ctx context.Context, q *Queries, id int32) (name, may string, err error) {
	rows, err := q.AccountSaid(ctx, id)
	for _, row := range rows {
		name, may = row.Name, row.May
	}
	return name, may, err
}

// noting changes an account in a transaction, with a note of what it may do before and after.
func (s *Accounts) noting(ctx context.Context, q *Queries, id int32, change func() error) error {
	name, was, err := said(ctx, q, id)
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	now, is, err := said(ctx, q, id)
	if err != nil || was == is && name == now {
		return err
	}
	side := func(name, may string) string {
		if name == "" {
			return ""
		}
		return name + ": " + may
	}
	return db.New(q.db).Note(ctx, s.who, "", "account", side(name, was), side(now, is))
}

// note notes that an account is new, with what it may do, or what else it has got: another password, or a link by which
// somebody chooses one. Who "" is the account itself.
func note(ctx context.Context, q *Queries, who string, id int32, got string) error {
	name, may, err := said(ctx, q, id)
	if err != nil {
		return err
	}
	if who == "" {
		who = "account " + name
	}
	return db.New(q.db).Note(ctx, who, "", "account", "", name+": "+cmp.Or(got, may))
}
