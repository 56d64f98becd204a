package admin

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"footfall/counter/app"
	"footfall/db"
)

// Shell is who changes something by a command.
const Shell = "shell"

// As returns an Admin whose changes are those of somebody else than the shell: an account or a key,
// by its name.
func (a *Admin) As(who string) *Admin {
	as := *a
	as.who = who
	return &as
}

// Who is whose the changes are.
func (a *Admin) Who() string { return a.who }

// note notes a change of an app in the transaction that makes it, as Note of db says.
func (q queries) note(ctx context.Context, app, what, was, is string) error {
	return q.Note(ctx, q.who, app, what, was, is)
}

// noteSettings notes all settings that differ.
func (q queries) noteSettings(ctx context.Context, was, is *db.App) error {
	for _, s := range app.Declared {
		before, after := s.Text(was), s.Text(is)
		if before == after {
			continue
		}
		if s.Hidden {
			before, after = listedLines(before), listedLines(after)
		}
		if err := q.note(ctx, is.Name, s.Name, strings.ReplaceAll(before, "\n", ", "), strings.ReplaceAll(after, "\n", ", ")); err != nil {
			return err
		}
	}
	return nil
}

func listedLines(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%d listed", strings.Count(text, "\n")+1)
}

// withoutSecret is where a webhook leads, without what may be secret in its URL.
func withoutSecret(text string) string {
	at, err := url.Parse(text)
	if err != nil {
		return "…"
	}
	return at.Scheme + "://" + at.Host + "/…"
}

// Changes lists the last changes, of all apps of a name or of everything (""), the latest first.
func (a *Admin) Changes(ctx context.Context, app string, most int32) (changes []ChangesListRow, err error) {
	err = a.db.Read(ctx, func(q *db.Queries) (err error) {
		p := ChangesListParams{App: &app, Most: most}
		if app == "" {
			p.App = nil
		}
		changes, err = New(q.Tx()).ChangesList(ctx, p)
		return err
	})
	return changes, wrap("list changes", err)
}

// ChangesOf lists those of an app that is there, and of no other that had its name before.
func (a *Admin) ChangesOf(ctx context.Context, app string, most int32) (changes []ChangesListRow, err error) {
	err = a.read(ctx, app, func(q queries, row *db.App) (err error) {
		changes, err = q.ChangesList(ctx, ChangesListParams{App: &row.Name, Began: &row.CreatedAt, Most: most})
		return err
	})
	return changes, wrap("list changes of app "+app, err)
}
