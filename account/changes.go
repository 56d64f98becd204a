package account

import (
	"cmp"
	"context"

	"footfall/db"
)

// WithAuthor returns a copy of s. The change history shows who (an account or a key) as the author of changes through this copy.
func (s *Accounts) WithAuthor(who string) *Accounts {
	as := *s
	as.author = who
	return &as
}

// readNameAndRights returns an account's name and rights for the change history. Both are "" if the account does not exist.
func readNameAndRights(ctx context.Context, q *Queries, id int32) (name, may string, err error) {
	rows, err := q.AccountTexts(ctx, id)
	for _, row := range rows {
		name, may = row.Name, row.May
	}
	return name, may, err
}

// recordChange runs the function change in the transaction of q. If the account's name or rights are then different,
// recordChange adds an entry to the change history, with the name and the rights before and after the change.
func (s *Accounts) recordChange(ctx context.Context, q *Queries, id int32, change func() error) error {
	name, was, err := readNameAndRights(ctx, q, id)
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	now, is, err := readNameAndRights(ctx, q, id)
	if err != nil || was == is && name == now {
		return err
	}
	side := func(name, may string) string {
		if name == "" {
			return ""
		}
		return name + ": " + may
	}
	return db.New(q.db).Note(ctx, s.author, "", "account", side(name, was), side(now, is))
}

// note adds an entry about an account to the change history. The text of the entry is entry, such as "another password", or the
// account's rights if entry is "". The author is who, or the account itself if who is "".
func note(ctx context.Context, q *Queries, who string, id int32, entry string) error {
	name, may, err := readNameAndRights(ctx, q, id)
	if err != nil {
		return err
	}
	if who == "" {
		who = "account " + name
	}
	return db.New(q.db).Note(ctx, who, "", "account", "", name+": "+cmp.Or(entry, may))
}
