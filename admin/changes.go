package admin

import (
	"context"
	"fmt"
	"net/url"
	"slices"
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

// Unless returns an Admin that lists no more sites of which listed is true.
func (a *Admin) Unless(listed Listed) *Admin {
	bound := *a
	bound.listed = listed
	return &bound
}

// Who is whose the changes are.
func (a *Admin) Who() string { return a.who }

// note notes a change of an app in the transaction that makes it, as Note of db says.
func (q queries) note(ctx context.Context, app, what, was, is string) error {
	return q.Note(ctx, q.who, app, what, was, is)
}

// noteSettings notes each setting that differs.
func (q queries) noteSettings(ctx context.Context, was, is *db.App) error {
	for _, s := range app.Declared {
		if s.Text(was) == s.Text(is) {
			continue
		}
		if err := q.note(ctx, is.Name, s.Name, notedText(s, was), notedText(s, is)); err != nil {
			return err
		}
	}
	return nil
}

// noteAdded notes a new app in one row, with its initial settings: those that differ from the table's defaults, and
// always how visits are counted. No app had the defaults before, so they are not listed as former values.
func (q queries) noteAdded(ctx context.Context, defaults, is *db.App) error {
	var settings []string
	for _, s := range app.Declared {
		if s.Text(defaults) != s.Text(is) || slices.Contains([]string{"access", "tz", "public-counts", "visitor"}, s.Name) {
			settings = append(settings, s.Name+" "+notedText(s, is))
		}
	}
	return q.note(ctx, is.Name, "app", "", "added: "+strings.Join(settings, "; "))
}

func notedText(s app.Setting, of *db.App) string {
	if s.Hidden {
		return listedLines(s.Text(of))
	}
	return strings.ReplaceAll(s.Text(of), "\n", ", ")
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
