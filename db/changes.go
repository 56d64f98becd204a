package db

import (
	"context"
	"strings"
	"unicode/utf8"
)

// longestNoted bounds what is noted of each side of a change, in bytes.
const longestNoted = 4000

// Note notes a change of an app ("": of none) in the transaction that makes it: who has made it, and
// what was and is. Neither may be a password, a key, a token, or tell who a visitor is.
func (q *Queries) Note(ctx context.Context, who, app, what, was, is string) error {
	p := ChangeAddParams{Who: who, App: &app, What: what, Was: noted(was), IsNow: noted(is)}
	if app == "" {
		p.App = nil
	}
	return q.ChangeAdd(ctx, p)
}

// noted is text that the table takes.
func noted(text string) string {
	if len(text) > longestNoted {
		text = text[:longestNoted] + " …"
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, string(utf8.RuneError)), "\x00", string(utf8.RuneError))
}
