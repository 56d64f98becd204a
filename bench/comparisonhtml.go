package bench

import (
	_ "embed" // comparison.html.tmpl
	"fmt"
	"html/template"
	"io"
)

//go:embed comparison.html.tmpl
var comparisonTemplate string

var comparisonPage = template.Must(template.New("comparison").Parse(comparisonTemplate))

// comparisonView is what the template shows.
type comparisonView struct {
	*Comparison
	Way, Repeats string
	Columns      []column
	Parts        []comparisonPart
	Overview     []overviewLine
}

// comparisonPart is one workload.
type comparisonPart struct {
	WorkloadAbout
	Percent string // first visits
	Wide    []chart
	Half    []chart
	Lines   []tableLine
	Faults  []fault
	Runs    []Run
}

type tableLine struct {
	Contender string
	Wrong     bool
	Cells     []string
}

// overviewLine is one contender over all workloads.
type overviewLine struct {
	ContenderAbout
	Cells []overviewCell
}

type overviewCell struct {
	PerSecond string
	Ratio     string // to baseline
	Wrong     bool
}

// WriteHTML writes the comparison as one page that needs nothing beside itself.
func (c *Comparison) WriteHTML(w io.Writer) error {
	view := comparisonView{Comparison: c, Way: c.way(), Repeats: c.repeats(), Columns: c.columns(), Overview: c.overview()}
	for _, workload := range c.Workloads {
		view.Parts = append(view.Parts, c.part(workload, view.Columns))
	}
	if err := comparisonPage.Execute(w, view); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func (c *Comparison) part(workload WorkloadAbout, columns []column) comparisonPart {
	rows := c.rowsOf(workload.Name)
	part := comparisonPart{WorkloadAbout: workload, Percent: upTo(100*workload.First, 1), Faults: c.faultsOf(rows)}
	for _, row := range rows {
		line := tableLine{Contender: row.Contender, Wrong: c.wrong(row)}
		for _, column := range columns {
			line.Cells = append(line.Cells, column.cell(row))
		}
		part.Lines = append(part.Lines, line)
	}
	for _, run := range c.Runs {
		if run.Workload == workload.Name {
			part.Runs = append(part.Runs, run)
		}
	}
	part.Wide = []chart{
		c.drawChart(wholeChart, "Visits a second", "visits/s; the line from the slowest round to the fastest; × to baseline", false, rows, perSecondOf),
		c.drawChart(wholeChart, "How long a visit takes", "milliseconds, logarithmic: ● p50, ○ p95, ❙ p99", true, rows, latencyOf),
	}
	part.Half = []chart{
		c.drawChart(halfChart, "Existence queries", "a visit", false, rows,
			func(r ComparisonRow) charted { return charted{bar: r.Asked, label: upTo(r.Asked, 3)} }),
		c.drawChart(halfChart, "PostgreSQL's log (WAL)", "bytes a visit", false, rows,
			func(r ComparisonRow) charted { return charted{bar: r.WAL, label: grouped(r.WAL)} }),
	}
	return part
}

func perSecondOf(r ComparisonRow) charted {
	label := grouped(r.PerSecond.Median)
	if r.ToBaseline > 0 {
		label += "  " + times(r.ToBaseline)
	}
	return charted{bar: r.PerSecond.Median, spread: []float64{r.PerSecond.Min, r.PerSecond.Max}, label: label}
}

func latencyOf(r ComparisonRow) charted {
	return charted{
		points: []float64{r.P50Ms, r.P95Ms, r.P99Ms},
		label:  fmt.Sprintf("%s / %s / %s", millis(r.P50Ms), millis(r.P95Ms), millis(r.P99Ms)),
	}
}

func (c *Comparison) overview() (lines []overviewLine) {
	for _, contender := range c.Contenders {
		line := overviewLine{ContenderAbout: contender}
		for _, workload := range c.Workloads {
			cell := overviewCell{PerSecond: untold}
			for _, row := range c.Rows {
				if row.Workload == workload.Name && row.Contender == contender.Name {
					cell = overviewCell{grouped(row.PerSecond.Median), times(row.ToBaseline), c.wrong(row)}
				}
			}
			line.Cells = append(line.Cells, cell)
		}
		lines = append(lines, line)
	}
	return lines
}
