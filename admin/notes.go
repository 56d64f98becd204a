package admin

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"footfall/db"
	"footfall/visit"
)

const (
	mostNotes     = 1_000    // maximum number of notes of an app
	longestNote   = 200      // maximum number of characters; the table notes checks this limit, too
	firstDayNoted = 19910101 // earlier than the first web page
	lastDayNoted  = 29991231
)

func newNote(day, text, site string, today int32, row *db.App) (n NotesListRow, err error) {
	n.Text = strings.TrimSpace(text)
	if n.DayID, err = visit.ParseDay(day, today); err != nil {
		return n, visit.InField("day", err)
	}
	if n.DayID < firstDayNoted || n.DayID > lastDayNoted {
		return n, visit.Errorf(visit.Invalid, "day", "%s is not a possible day: write one like 2026-11-22", visit.DayText(n.DayID))
	}
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	switch {
	case n.Text == "":
		return n, visit.Errorf(visit.Invalid, "text", "it is missing: write a sentence, like: A new version")
	case !utf8.ValidString(n.Text) || strings.ContainsFunc(n.Text, hidden):
		return n, visit.Errorf(visit.Invalid, "text", "it has characters that cannot be seen: write one line of plain text")
	case utf8.RuneCountInString(n.Text) > longestNote:
		return n, visit.Errorf(visit.Invalid, "text", "it is longer than %d characters: shorten it", longestNote)
	}
	n.Site, err = siteOf(row, site)
	return n, err
}

// historyText returns the text of a note for the change history.
func (n NotesListRow) historyText() string {
	return visit.DayText(n.DayID) + ", " + SitesOf(n.Site) + ": " + n.Text
}

// AddNote adds a note for a day, and returns the note as stored. If site is "", all charts of the app show the note. Otherwise
// only charts of this site show it.
func (a *Admin) AddNote(ctx context.Context, app, day, text, site string) (n NotesListRow, err error) {
	err = wrap("add a note to app "+app, a.withApp(ctx, app, func(q queries, row *db.App) error {
		today, err := a.today(row)
		if err != nil {
			return err
		}
		if n, err = newNote(day, text, site, today, row); err != nil {
			return err
		}
		n.ID, err = q.NoteAdd(ctx, NoteAddParams{AppID: row.ID, Site: n.Site, Day: n.DayID, Text: n.Text, Most: mostNotes})
		if err != nil {
			return replaceNoRows(err, visit.Errorf(visit.Invalid, "text", "the app has %d notes, the most it may have: remove some", mostNotes))
		}
		return q.note(ctx, app, "note", "", n.historyText())
	}))
	return n, err
}

// RemoveNote removes a note by its ID, and returns it.
func (a *Admin) RemoveNote(ctx context.Context, app string, id int32) (removed NotesListRow, err error) {
	err = a.withApp(ctx, app, func(q queries, row *db.App) error {
		n, err := q.NoteRemove(ctx, row.ID, id)
		if err != nil {
			return replaceNoRows(err, visit.Errorf(visit.NotFound, "number", "the app has no note %d: look at the list of its notes", id))
		}
		removed = NotesListRow(n)
		return q.note(ctx, app, "note", removed.historyText(), "")
	})
	return removed, wrap("remove a note of app "+app, err)
}

// Notes lists the notes of an app, the last day first.
func (a *Admin) Notes(ctx context.Context, app string) ([]NotesListRow, error) {
	return list(ctx, a, "notes", app, queries.NotesList)
}
