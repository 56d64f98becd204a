package web

import (
	"strings"
	"time"

	"footfall/report"
	"footfall/visit"
)

// Notes is the page on which notes of an app are written and removed.
type Notes struct {
	App, Token string
	// What was typed, or is proposed.
	Day, Text, Site string
	Problem         string // with what was typed; "": none
	All             []Note
}

// Note is what was noted of a day.
type Note struct {
	ID   int32
	Day  int32
	Site string // "": all of the app
	Text string
}

// Page makes the page.
func (n Notes) Page() (Page, error) {
	back := view{app: App{Name: n.App}, span: usualSpan, compare: compares[0], by: orders[0], sort: sorts[0]}
	if site, err := visit.ParseSite(n.Site); err == nil {
		back.site = site
	}
	return render("notes", struct {
		frame
		Notes
		Back string
	}{frame{Title: "Notes of " + n.App, Home: "/", Leave: true}, n, back.link()})
}

// notesOf are the notes in a row of a chart.
func notesOf(p report.Period) (notes []Note) {
	for _, said := range p.Notes {
		if date, err := time.Parse(time.DateOnly, said[:min(len(said), len(time.DateOnly))]); err == nil {
			notes = append(notes, Note{Day: visit.DayOf(date, time.UTC), Text: said[min(len(said), len(time.DateOnly)+1):]})
		}
	}
	return notes
}

// notesTold is how many notes the sentence of a chart has; all stand below it.
const notesTold = 3

// noted is what a chart says of its notes.
func noted(notes []Note) (said string) {
	for i, n := range notes {
		if i == notesTold {
			return said + " And " + count(int64(len(notes)-i), "more note") + "."
		}
		said += " Noted of " + shortDay(n.Day) + ": " + strings.TrimSuffix(n.Text, ".") + "."
	}
	return said
}
