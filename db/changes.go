package db

import (
	"context"
	"strings"
	"unicode/utf8"
)

// maxNotedBytes is the maximum length of each value in the table changes, old or new.
const maxNotedBytes = 4000

// Note records a change in the table changes. q must be the transaction that makes the change. who is the author. app
// is "" if the change concerns no app. The last two parameters are the old and the new value. They must not contain
// passwords, keys, tokens or anything that identifies a visitor.
func (q *Queries) Note(ctx context.Context, who, app, what, oldValue, newValue string) error {
	p := ChangeAddParams{Who: who, App: &app, What: what, Was: clean(oldValue), IsNow: clean(newValue)}
	if app == "" {
		p.App = nil
	}
	return q.ChangeAdd(ctx, p)
}

// clean shortens text and replaces invalid characters, so that the table changes accepts the text.
func clean(text string) string {
	if len(text) > maxNotedBytes {
		text = text[:maxNotedBytes] + " …"
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, string(utf8.RuneError)), "\x00", string(utf8.RuneError))
}
