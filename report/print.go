package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"footfall/report/draw"
	"footfall/visit"
)

// Format is how an answer is written.
type Format int

// The formats.
const (
	Text Format = iota // for people: titles, tables and bars
	JSON
	CSV
)

// Answer is what somebody asked for, ready to be written. Its fields are what JSON says.
type Answer interface {
	rows() (header []string, rows [][]any)
	text(w io.Writer, s draw.Style) error
}

// Print writes an answer. The style matters to text; on a terminal nothing stored is written raw in any format.
func Print(w io.Writer, a Answer, f Format, s draw.Style) error {
	if f == Text {
		return a.text(w, s)
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
	if f == CSV {
		header, rows := a.rows()
		return WriteCSV(w, header, rows)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(a)
}

// Top is the first pages of an app, or of one of its sites.
type Top struct {
	App         string `json:"app"`
	Site        string `json:"site,omitempty"`
	visit.Range        // of days
	By          string `json:"by"` // pv, uv (new visitors) or hot
	Pages       []Page `json:"pages"`
}

func (t Top) rows() ([]string, [][]any) {
	return []string{"uri", "pv", "new_visitors", "uniques", "hot"}, convert(t.Pages, func(p Page) []any {
		return []any{p.URI, p.PV, p.NewVisitors, p.Uniques, p.Hot}
	})
}

func (t Top) text(w io.Writer, s draw.Style) error {
	of := t.App
	if t.Site != "" {
		of += ", " + t.Site
	}
	if len(t.Pages) == 0 {
		return say(w, "%s: nothing was counted %s\n", of, t.Range)
	}
	if err := say(w, "%s: first pages by %s, %s\n\n", of, t.By, t.Range); err != nil {
		return err
	}
	return draw.Table{
		Columns: []draw.Column{{Name: "#"}, {Name: "PAGE", Gives: true}, {Name: "PV", Bar: t.By == "pv"}, {Name: "NEW", Bar: t.By == "uv"},
			{Name: "UNIQUES"}, {Name: "HOT", Bar: t.By == "hot"}},
		Rows: enumerate(t.Pages, func(i int, p Page) []any {
			return []any{int64(i + 1), p.URI, p.PV, p.NewVisitors, p.Uniques, p.Hot}
		}),
	}.Write(w, s)
}

// CameOn is who came to a target on a day.
type CameOn struct {
	App      string       `json:"app"`
	Target   string       `json:"target"`
	Day      int32        `json:"day"`
	PV       int64        `json:"pv"` // how many they were; kept longer than who they were
	Visitors []DayVisitor `json:"visitors"`
}

func (c CameOn) rows() ([]string, [][]any) {
	return []string{"visitor", "rank", "new"}, convert(c.Visitors, func(v DayVisitor) []any { return []any{v.Visitor, v.Rank, v.New} })
}

func (c CameOn) text(w io.Writer, s draw.Style) error {
	switch {
	case c.PV == 0:
		return say(w, "%s: nobody came to %s on %s\n", c.App, c.Target, draw.Day(c.Day))
	case len(c.Visitors) == 0:
		return say(w, "%s: %s came to %s on %s; who they were is not kept any more\n", c.App, count(c.PV, "visitor"), c.Target, draw.Day(c.Day))
	}
	if err := say(w, "%s: %s of %s on %s\n\n", c.App, count(c.PV, "visitor"), c.Target, draw.Day(c.Day)); err != nil {
		return err
	}
	err := draw.Table{
		Columns: []draw.Column{{Name: "VISITOR"}, {Name: "RANK"}, {Name: "NEW"}},
		Rows: convert(c.Visitors, func(v DayVisitor) []any {
			return []any{v.Visitor, v.Rank, map[bool]string{true: "new"}[v.New]}
		}),
	}.Write(w, s)
	if missing := c.PV - int64(len(c.Visitors)); err == nil && missing > 0 {
		err = say(w, "\n%s more, after these in order of address, or erased\n", draw.Number(missing))
	}
	return err
}

// RankOf is a visitor of a target.
type RankOf struct {
	App    string `json:"app"`
	Target string `json:"target"`
	Ranked
}

func (r RankOf) rows() ([]string, [][]any) {
	row := []any{r.Rank, r.Visitor, r.FirstDay, r.LastDay, r.Erased}
	if r.Erased {
		row = []any{r.Rank, nil, nil, nil, true}
	}
	return []string{"rank", "visitor", "first_day", "last_day", "erased"}, [][]any{row}
}

func (r RankOf) text(w io.Writer, _ draw.Style) error {
	if r.Erased {
		return say(w, "%s: visitor %s of %s was erased, or has not come for long: nothing but the number is kept\n", r.App, draw.Number(r.Rank), r.Target)
	}
	return say(w, "%s: visitor %s of %s is %s, who came first on %s and last on %s\n",
		r.App, draw.Number(r.Rank), r.Target, r.Visitor, draw.Day(r.FirstDay), draw.Day(r.LastDay))
}

// say writes a line of text in which nothing stored stays raw.
func say(w io.Writer, format string, values ...any) error {
	for i, value := range values {
		values[i] = draw.Text(fmt.Sprint(value))
	}
	_, err := fmt.Fprintf(w, format, values...)
	return err
}

func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return draw.Number(n) + " " + what + "s"
}

func enumerate[From, To any](rows []From, f func(int, From) To) []To {
	i := -1
	return convert(rows, func(row From) To {
		i++
		return f(i, row)
	})
}
