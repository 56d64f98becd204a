package admin

import (
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// Note is what somebody has noted of a day of an app.
type Note struct {
	ID   int32
	Site string // the one site of which it was; "": all of the app
	Day  int32
	Text string
}

const (
	mostNotes     = 1_000    // of an app
	longestNote   = 200      // characters: the table knows
	firstDayNoted = 19910101 // before any web page
	lastDayNoted  = 29991231
)

// newNote reads a note as people write it.
func newNote(day, text, site string, today int32, row *db.App) (n Note, err error) {
	n.Text = strings.TrimSpace(text)
	if n.Day, err = visit.ParseDay(day, today); err != nil {
		return n, visit.Errorf(visit.Invalid, "day", "%v", err)
	}
	if n.Day < firstDayNoted || n.Day > lastDayNoted {
		return n, visit.Errorf(visit.Invalid, "day", "%s is no day of a web page: write one like 2026-11-22", visit.DayText(n.Day))
	}
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	switch {
	case n.Text == "":
		return n, visit.Errorf(visit.Invalid, "text", "it is missing: write a sentence, like: A new version")
	case !utf8.ValidString(n.Text) || strings.ContainsFunc(n.Text, hidden):
		return n, visit.Errorf(visit.Invalid, "text", "it has characters that cannot be seen: write one line of letters")
	case utf8.RuneCountInString(n.Text) > longestNote:
		return n, visit.Errorf(visit.Invalid, "text", "it is longer than %d characters: say it in fewer", longestNote)
	}
	if site == "" {
		return n, nil
	}
	if n.Site, err = visit.ParseSite(site); err == nil && !app.CountsSite(row, n.Site) {
		err = visit.Errorf(visit.Invalid, "site", "the app does not count %s: name one of its sites, or none", visit.Shown(n.Site))
	}
	return n, err
}

// noteOf is a note as it is stored.
func noteOf(id int32, site *string, day int32, text string) Note {
	n := Note{ID: id, Day: day, Text: text}
	if site != nil {
		n.Site = *site
	}
	return n
}

// AddNote adds a note of a day, which is shown on charts of an app, or of one site of it ("": of
// all), and returns it as it is stored.
func (a *Admin) AddNote(ctx context.Context, app, day, text, site string) (n Note, err error) {
	err = wrap("add a note to app "+app, a.withApp(ctx, app, func(q *db.Queries, row *db.App) error {
		today, err := a.today(row)
		if err != nil {
			return err
		}
		if n, err = newNote(day, text, site, today, row); err != nil {
			return err
		}
		add := db.NoteAddParams{AppID: row.ID, Day: n.Day, Text: n.Text, Most: mostNotes}
		if n.Site != "" {
			add.Site = &n.Site
		}
		n.ID, err = q.NoteAdd(ctx, add)
		if errors.Is(err, db.ErrNoRows) {
			return visit.Errorf(visit.Invalid, "text", "the app has %d notes, as many as it may have: remove some", mostNotes)
		}
		return err
	}))
	return n, err
}

// RemoveNote removes a note by its number, and returns it.
func (a *Admin) RemoveNote(ctx context.Context, app string, id int32) (removed Note, err error) {
	err = a.withApp(ctx, app, func(q *db.Queries, row *db.App) error {
		n, err := q.NoteRemove(ctx, db.NoteRemoveParams{AppID: row.ID, ID: id})
		if errors.Is(err, db.ErrNoRows) {
			return visit.Errorf(visit.NotFound, "number", "the app has no note %d: look at the list of them", id)
		}
		removed = noteOf(n.ID, n.Site, n.DayID, n.Text)
		return err
	})
	return removed, wrap("remove a note of app "+app, err)
}

// Notes lists the notes of an app, the last day first.
func (a *Admin) Notes(ctx context.Context, app string) (notes []Note, err error) {
	err = a.db.Read(ctx, func(q *db.Queries) error {
		row, err := appOf(ctx, q, app)
		if err != nil {
			return err
		}
		rows, err := q.NotesList(ctx, row.ID)
		for _, n := range rows {
			notes = append(notes, noteOf(n.ID, n.Site, n.DayID, n.Text))
		}
		return err
	})
	return notes, wrap("list the notes of app "+app, err)
}
