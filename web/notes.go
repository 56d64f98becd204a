package web

import (
	"net/url"
	"strings"
	"time"

	"footfall/report"
	"footfall/visit"
)

type note struct {
	Day  int32
	Text string
}

// linkToAddNote returns the link to add a note to the day that the page shows. It returns "" if the page shows several days, or
// if the reader may not change the app.
func (v view) linkToAddNote() string {
	if of := v.app.Reader.Settings; v.days.From == v.days.To && strings.HasPrefix(of, "/settings/") {
		return v.app.Root + of + "?day=" + visit.DayText(v.days.From) + "&site=" + url.QueryEscape(v.site) + "#notes"
	}
	return ""
}

func notesOf(p report.Period) (notes []note) {
	for _, text := range p.Notes {
		if date, err := time.Parse(time.DateOnly, text[:min(len(text), len(time.DateOnly))]); err == nil {
			notes = append(notes, note{Day: visit.DayOf(date, time.UTC), Text: text[min(len(text), len(time.DateOnly)+1):]})
		}
	}
	return notes
}
