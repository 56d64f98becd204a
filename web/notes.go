package web

import (
	"strings"
	"time"

	"footfall/report"
	"footfall/visit"
)

// note is what was noted of a day.
type note struct {
	Day  int32
	Text string
}

// notesOf are the notes in a row of a chart.
func notesOf(p report.Period) (notes []note) {
	for _, text := range p.Notes {
		if date, err := time.Parse(time.DateOnly, text[:min(len(text), len(time.DateOnly))]); err == nil {
			notes = append(notes, note{Day: visit.DayOf(date, time.UTC), Text: text[min(len(text), len(time.DateOnly)+1):]})
		}
	}
	return notes
}

// notesTold is how many notes the sentence of a chart has; all stand below it.
const notesTold = 3

// noted is what a chart says of its notes.
func noted(notes []note) (text string) {
	for i, n := range notes {
		if i == notesTold {
			return text + " And " + count(int64(len(notes)-i), "more note") + "."
		}
		text += " Noted of " + shortDay(n.Day) + ": " + strings.TrimSuffix(n.Text, ".") + "."
	}
	return text
}
