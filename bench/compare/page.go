package compare

import (
	"bytes"
	_ "embed" // page.html.tmpl
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"footfall/bench"
	"footfall/report/draw"
)

//go:embed page.html.tmpl
var pageTemplate string

var page = template.Must(template.New("page").Parse(pageTemplate))

// part is what the page shows of one workload.
type part struct {
	Load
	Percent string // first visits
	Plots   template.URL
	Lines   []line
	Faults  []string
}

type line struct {
	Contender string
	Wrong     bool
	Cells     []string
}

// WriteHTML writes the comparison as one page that needs nothing beside itself.
func (r *Report) WriteHTML(w io.Writer) error {
	view := struct {
		*Report
		Way     string
		Columns []column
		Parts   []part
	}{Report: r, Way: r.way(), Columns: r.columns()}
	for _, l := range r.Loads {
		p, err := r.part(l, view.Columns)
		if err != nil {
			return err
		}
		view.Parts = append(view.Parts, p)
	}
	if err := page.Execute(w, view); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func (r *Report) part(l Load, columns []column) (p part, err error) {
	rows := r.rowsOf(l.Name)
	p = part{Load: l, Percent: bench.UpTo(100*l.First, 1)}
	rate, wait, wal := draw.Bars{Title: "Visits a second"}, draw.Bars{Title: "How long 99 % of the visits take, in ms, on a logarithmic scale", Log: true},
		draw.Bars{Title: "PostgreSQL's log (WAL), bytes a visit"}
	for _, row := range rows {
		fault := r.faultOf(row)
		l := line{Contender: row.Contender, Wrong: fault != ""}
		for _, column := range columns {
			l.Cells = append(l.Cells, column.cell(row))
		}
		p.Lines = append(p.Lines, l)
		if fault != "" {
			p.Faults = append(p.Faults, fault)
		}
		bar := func(to *draw.Bars, value float64, label string) {
			to.Rows = append(to.Rows, draw.Bar{Name: row.Contender, Value: value, Label: label, Strong: fault == ""})
		}
		bar(&rate, row.PerSecond.Median, fmt.Sprintf("%s (%s to %s)", bench.Grouped(row.PerSecond.Median), bench.Grouped(row.PerSecond.Min), bench.Grouped(row.PerSecond.Max)))
		bar(&wait, row.P99Ms, bench.Millis(row.P99Ms))
		bar(&wal, row.WAL, bench.Grouped(row.WAL))
	}
	var svg bytes.Buffer
	if err := draw.WriteBars(&svg, l.Name, rate, wait, wal); err != nil {
		return p, err
	}
	p.Plots = template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(svg.Bytes())) //nolint:gosec // it is ours
	return p, nil
}
