package db

import (
	"context"
	"strings"
	"unicode/utf8"
)

// longestNoted bounds the old and the new value of a noted change, in bytes each.
const longestNoted = 4000

// Note records a change in the transaction that makes it: the app ("" if the change concerns no app), the user, and
// the old and new values. The values must not contain passwords, keys, tokens or anything that identifies a
// visitor.
func (q *Queries) Note(ctx context.Context, who, app, what, was, is string) error {
	p := ChangeAddParams{Who: who, App: &app, What: what, Was: noted(was), IsNow: noted(is)}
	if app == "" {
		p.App = nil
	}
	return q.ChangeAdd(ctx, p)
}

// noted shortens text and replaces invalid characters, so that the table accepts it.
func noted(text string) string {
	if len(text) > longestNoted {
		text = text[:longestNoted] + " …"
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, string(utf8.RuneError)), "\x00", string(utf8.RuneError))
}
