package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"footfall/report/draw"
	"footfall/visit"
)

// Format is the output format of an answer.
type Format int

// The output formats.
const (
	Text Format = iota // for people: titles, tables and bars
	JSON
	CSV
	SVG // a drawing; only for reports by day
)

// Answer is the result of a report. Its JSON fields are the JSON output.
type Answer interface {
	rows() (header []string, rows [][]any)
	text(s draw.Style) string
}

// Print writes an answer. Only the format Text uses all fields of s. On a terminal (s.Width > 0), stored texts are
// escaped in every format.
func Print(w io.Writer, a Answer, f Format, s draw.Style) error {
	if f == Text {
		_, err := io.WriteString(w, a.text(s))
		return err
	}
	var out bytes.Buffer
	if err := encode(&out, a, f); err != nil {
		return err
	}
	if s.Width == 0 {
		_, err := out.WriteTo(w)
		return err
	}
	for line := range strings.Lines(out.String()) {
		if _, err := fmt.Fprintln(w, draw.Text(strings.TrimSuffix(line, "\n"))); err != nil {
			return err
		}
	}
	return nil
}

func encode(w io.Writer, a Answer, f Format) error {
	switch f {
	case CSV:
		_, err := io.WriteString(w, csv(a.rows()))
		return err
	case SVG:
		days, drawn := a.(dayByDay)
		if !drawn {
			return errors.New("only days can be drawn as SVG")
		}
		_, err := io.WriteString(w, days.plot().SVG(days.title()))
		return err
	}
	if a, is := a.(*Rows); is {
		a.Next = "" // `footfall report` has no parameter for the next page
		body, err := a.JSON(a.Look.membersOf(a.Name))
		var indented bytes.Buffer
		if err == nil {
			err = json.Indent(&indented, body, "", "  ")
		}
		if err == nil {
			_, err = fmt.Fprintln(w, indented.String())
		}
		return err
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(a)
}

// JSON returns the rows as an object. Its members are the list of rows, the cursor of the next page (next), the fields of
// a.Of, and the fields of the struct beside.
func (a *Rows) JSON(beside any) ([]byte, error) {
	members := []any{map[string]any{a.Name: a.JSONRows()}}
	if a.One {
		members[0] = reflect.ValueOf(a.List).Index(0).Interface()
	}
	if a.Next != "" {
		members = append(members, map[string]string{"next": a.Next})
	}
	body := []byte("{")
	for _, some := range append(members, a.Of, beside) {
		object, err := json.Marshal(some)
		if err != nil {
			return nil, err
		}
		if inner := object[1 : len(object)-1]; some != nil && len(inner) > 0 {
			if len(body) > 1 {
				body = append(body, ',')
			}
			body = append(body, inner...)
		}
	}
	return append(body, '}'), nil
}

// requestMembers holds the parameters of a request that the JSON output repeats.
type requestMembers struct {
	App          string `json:"app"`
	Target       string `json:"target,omitempty"`
	Site         string `json:"site,omitempty"`
	*visit.Range        // the requested days
	By           string `json:"by,omitempty"`
}

func (l Look) membersOf(name string) requestMembers {
	switch name {
	case "pages":
		return requestMembers{App: l.App, Site: l.Target, Range: &l.In, By: l.By}
	case "tags", "events", "goals", "funnel":
		return requestMembers{App: l.App, Target: l.Target, Range: &l.In}
	}
	return requestMembers{App: l.App, Target: l.Target}
}

func (a *Rows) rows() ([]string, [][]any) { return table(a.JSONRows()) }

func (a *Rows) text(s draw.Style) string {
	switch list := a.List.(type) {
	case []TitledPage:
		return a.pagesText(s, list)
	case []Tag:
		return a.tagsText(s, list)
	case []Event:
		return a.eventsText(s, list)
	case []Goal:
		return a.goalsText(s, list)
	case []Step:
		return a.funnelText(s, list)
	case []DayVisitor:
		return a.visitorsText(s, list)
	case []Ranked:
		return a.rankText(list[0])
	}
	of := a.Look.App
	if a.Look.Target != "" {
		of += ", " + visit.Shown(a.Look.Target)
	}
	header, rows := table(a.List)
	if len(rows) == 0 {
		return escapedf("%s: nothing was counted\n", of)
	}
	panel := draw.Table{Rows: rows}
	for i, name := range header {
		panel.Columns = append(panel.Columns, draw.Column{Name: strings.ToUpper(strings.ReplaceAll(name, "_", " "))})
		for _, row := range rows {
			switch value := row[i].(type) {
			case int64:
				row[i] = orDash(value)
			case int32:
				if row[i] = int64(value); strings.HasSuffix(name, "day") {
					row[i] = draw.Day(value)
				}
			}
		}
	}
	return escapedf("%s: %s\n\n", of, a.Name) + panel.Text(s)
}

// escapedf is fmt.Sprintf for text output: it escapes all values for terminals.
func escapedf(format string, values ...any) string {
	for i, value := range values {
		values[i] = draw.Text(fmt.Sprint(value))
	}
	return fmt.Sprintf(format, values...)
}
