package counter

import (
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

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
	mostNotes    = 1_000 // of an app
	longestNote  = 200   // characters: the table knows
	lastDayNoted = 29991231
)

// newNote reads a note as people write it.
func newNote(day, text, site string, today int32, counts func(site string) bool) (n Note, err error) {
	n.Text = strings.TrimSpace(text)
	if n.Day, err = visit.ParseDay(day, today); err != nil {
		return n, visit.Errorf(visit.Invalid, "day", "%v", err)
	}
	if n.Day < firstDayEver || n.Day > lastDayNoted {
		return n, visit.Errorf(visit.Invalid, "day", "%s is no day of a web page: write one like 2026-11-22", dayText(n.Day))
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
	if n.Site, err = visit.ParseSite(site); err == nil && !counts(n.Site) {
		err = visit.Errorf(visit.Invalid, "site", "the app does not count %s: name one of its sites, or none", visit.Shown(n.Site))
	}
	return n, err
}

func addNote(ctx context.Context, q *db.Queries, app int32, n Note) (Note, error) {
	row := db.NoteAddParams{AppID: app, Day: n.Day, Text: n.Text, Most: mostNotes}
	if n.Site != "" {
		row.Site = &n.Site
	}
	id, err := q.NoteAdd(ctx, row)
	if errors.Is(err, db.ErrNoRows) {
		return n, visit.Errorf(visit.Invalid, "text", "the app has %d notes, as many as it may have: remove some", mostNotes)
	}
	n.ID = id
	return n, err
}

func removeNote(ctx context.Context, q *db.Queries, app, id int32) (Note, error) {
	row, err := q.NoteRemove(ctx, db.NoteRemoveParams{AppID: app, ID: id})
	if errors.Is(err, db.ErrNoRows) {
		return Note{}, visit.Errorf(visit.NotFound, "number", "the app has no note %d: look at the list of them", id)
	}
	return noteOf(row.ID, row.Site, row.DayID, row.Text), err
}

// noteOf is a note as it is stored.
func noteOf(id int32, site *string, day int32, text string) Note {
	n := Note{ID: id, Day: day, Text: text}
	if site != nil {
		n.Site = *site
	}
	return n
}

func listNotes(ctx context.Context, q *db.Queries, app int32) (notes []Note, err error) {
	rows, err := q.NotesList(ctx, app)
	for _, row := range rows {
		notes = append(notes, noteOf(row.ID, row.Site, row.DayID, row.Text))
	}
	return notes, err
}

// AddNote adds a note of a day, which is shown on charts of an app, or of one site of it ("": of
// all), and returns it as it is stored.
func (a *Admin) AddNote(ctx context.Context, app, day, text, site string) (added Note, err error) {
	err = wrap("add a note to app "+app, a.withApp(ctx, app, func(q *db.Queries, row *db.App) error {
		today, err := a.today(row)
		if err != nil {
			return err
		}
		n, err := newNote(day, text, site, today, func(site string) bool { return countsSite(row, site) })
		if err != nil {
			return err
		}
		added, err = addNote(ctx, q, row.ID, n)
		return err
	}))
	return added, err
}

// RemoveNote removes a note by its number, and returns it.
func (a *Admin) RemoveNote(ctx context.Context, app string, id int32) (removed Note, err error) {
	err = a.withApp(ctx, app, func(q *db.Queries, row *db.App) error {
		removed, err = removeNote(ctx, q, row.ID, id)
		return err
	})
	return removed, wrap("remove a note of app "+app, err)
}

// Notes lists the notes of an app, the last day first.
func (a *Admin) Notes(ctx context.Context, app string) (notes []Note, err error) {
	err = a.db.Read(ctx, func(q *db.Queries) error {
		row, err := appOf(ctx, q, app)
		if err == nil {
			notes, err = listNotes(ctx, q, row.ID)
		}
		return err
	})
	return notes, wrap("list the notes of app "+app, err)
}

// MayNote reports whether the reader may write notes.
func (r *Reading) MayNote() bool { return r.notes }

// AddNote is that of Admin, for a reader who may write notes, as are the two below.
func (r *Reading) AddNote(ctx context.Context, day, text, site string) error {
	n, err := newNote(day, text, site, r.Today, r.app.counts)
	if err != nil {
		return err
	}
	return r.withNotes(ctx, func(q *db.Queries) error {
		_, err := addNote(ctx, q, r.app.id, n)
		return err
	})
}

// RemoveNote removes a note by its number.
func (r *Reading) RemoveNote(ctx context.Context, id int32) error {
	return r.withNotes(ctx, func(q *db.Queries) error {
		_, err := removeNote(ctx, q, r.app.id, id)
		return err
	})
}

// Notes lists the notes of the app, the last day first.
func (r *Reading) Notes(ctx context.Context) (notes []Note, err error) {
	err = r.withNotes(ctx, func(q *db.Queries) error {
		notes, err = listNotes(ctx, q, r.app.id)
		return err
	})
	return notes, err
}

// withNotes runs f in a transaction, for a reader who may write notes.
func (r *Reading) withNotes(ctx context.Context, f func(q *db.Queries) error) error {
	if !r.notes {
		return ErrNotShown
	}
	ctx, cancel := r.counter.db.InTime(ctx)
	defer cancel()
	err := r.counter.db.InTx(ctx, f)
	if told, is := errors.AsType[*visit.Error](err); is {
		return told
	}
	if err != nil {
		return unanswered(err)
	}
	return nil
}
