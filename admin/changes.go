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

// Shell is the author of changes on the command line.
const Shell = "shell"

// WithAuthor returns an Admin that records who as the author of its changes. who is the name of an account or a key.
func (a *Admin) WithAuthor(who string) *Admin {
	as := *a
	as.author = who
	return &as
}

// WithListedCheck returns an Admin that refuses to add a site to an existing app if listed returns true for the site.
func (a *Admin) WithListedCheck(listed Listed) *Admin {
	bound := *a
	bound.listed = listed
	return &bound
}

// Author returns the author under which this Admin records its changes.
func (a *Admin) Author() string { return a.author }

// note adds an entry to the change history, in the transaction of the change.
func (q queries) note(ctx context.Context, app, what, was, is string) error {
	return q.Note(ctx, q.author, app, what, was, is)
}

// noteSettings adds each changed setting to the change history.
func (q queries) noteSettings(ctx context.Context, was, is *db.App) error {
	for _, s := range app.AllSettings {
		if s.Text(was) == s.Text(is) {
			continue
		}
		if err := q.note(ctx, is.Name, s.Name, settingText(s, was), settingText(s, is)); err != nil {
			return err
		}
	}
	return nil
}

// noteAdded adds one entry for a new app to the change history. The entry lists every setting that differs from the table's
// default, and always access, tz, public-counts and visitor. It lists no old values, because a new app has none.
func (q queries) noteAdded(ctx context.Context, defaults, is *db.App) error {
	var settings []string
	for _, s := range app.AllSettings {
		if s.Text(defaults) != s.Text(is) || slices.Contains([]string{"access", "tz", "public-counts", "visitor"}, s.Name) {
			settings = append(settings, s.Name+" "+settingText(s, is))
		}
	}
	return q.note(ctx, is.Name, "app", "", "added: "+strings.Join(settings, "; "))
}

func settingText(s app.Setting, of *db.App) string {
	if s.Hidden {
		return countText(s.Text(of))
	}
	return strings.ReplaceAll(s.Text(of), "\n", ", ")
}

func countText(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%d listed", strings.Count(text, "\n")+1)
}

// withoutSecret returns a URL without its path and query, which may be secret.
func withoutSecret(text string) string {
	at, err := url.Parse(text)
	if err != nil {
		return "…"
	}
	return at.Scheme + "://" + at.Host + "/…"
}

// Changes lists the last changes of all apps that ever had the name app, the latest first. If app is "", it lists the last
// changes of all apps, and the changes that concern no app.
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

// ChangesOf lists the changes of an existing app, but not of earlier apps with its name.
func (a *Admin) ChangesOf(ctx context.Context, app string, most int32) (changes []ChangesListRow, err error) {
	err = a.read(ctx, app, func(q queries, row *db.App) (err error) {
		changes, err = q.ChangesList(ctx, ChangesListParams{App: &row.Name, Began: &row.CreatedAt, Most: most})
		return err
	})
	return changes, wrap("list changes of app "+app, err)
}
