package bench

import (
	"fmt"
	"math"
)

// chart is a picture with a line for each contender, laid out; comparison.html.tmpl draws it.
type chart struct {
	Title, Axis   string
	Width, Height int
	Left, Right   int // the plot's edges; names are left of it, and right of it is room for figures
	Bottom        int
	Middle        int // of the plot
	Ticks         []tick
	Lines         []chartLine
}

type tick struct {
	X    float64
	Text string
}

// chartLine is one contender. Lengths and places are in the picture's own units.
type chartLine struct {
	Name   string
	Class  string // exact or inexact, and wrong besides if it was
	Y      int
	Bar    float64   // length, from the left edge
	Whisk  []float64 // from, to
	Points []float64 // p50, p95, p99
	LabelX float64
	Label  string
	Wrong  string // what it got wrong
}

// charted is what a line shows, in the figure's units.
type charted struct {
	bar    float64
	spread []float64 // least, most
	points []float64
	label  string
}

const (
	lineStep  = 28
	chartHead = 34
	chartFoot = 44
)

// The two widths of a chart: as wide as the text, or half.
type chartShape struct{ width, left, right int }

var (
	wholeChart = chartShape{width: 920, left: 130, right: 640}
	halfChart  = chartShape{width: 450, left: 130, right: 370}
)

// drawChart lays one line out for each row. Where logarithmic, the figures must be points, not bars.
func (c *Comparison) drawChart(shape chartShape, title, axis string, logarithmic bool, rows []ComparisonRow, of func(ComparisonRow) charted) chart {
	var least, most float64
	figures := make([]charted, len(rows))
	for i, row := range rows {
		figures[i] = of(row)
		for _, v := range append(append([]float64{figures[i].bar}, figures[i].spread...), figures[i].points...) {
			most = max(most, v)
			if v > 0 && (least == 0 || v < least) {
				least = v
			}
		}
	}
	s := newScale(least, most, logarithmic, shape)
	drawn := chart{
		Title: title, Axis: axis, Width: shape.width, Left: shape.left, Right: shape.right, Middle: (shape.left + shape.right) / 2,
		Bottom: chartHead + lineStep*len(rows), Height: chartHead + lineStep*len(rows) + chartFoot, Ticks: s.ticks(),
	}
	for i, row := range rows {
		drawn.Lines = append(drawn.Lines, c.drawLine(row, figures[i], s, chartHead+lineStep/2+i*lineStep))
	}
	return drawn
}

func (c *Comparison) drawLine(row ComparisonRow, f charted, s scale, y int) chartLine {
	line := chartLine{Name: row.Contender, Class: "inexact", Y: y, Label: f.label, LabelX: s.at(f.bar)}
	if c.contender(row.Contender).Exact {
		line.Class = "exact"
	}
	if len(f.points) == 0 {
		line.Bar = s.at(f.bar) - float64(s.shape.left)
	}
	for _, v := range f.spread {
		line.Whisk = append(line.Whisk, s.at(v))
		line.LabelX = max(line.LabelX, s.at(v))
	}
	for _, v := range f.points {
		line.Points = append(line.Points, s.at(v))
		line.LabelX = max(line.LabelX, s.at(v))
	}
	line.LabelX += 8
	if c.wrong(row) {
		line.Class += " wrong"
		line.Wrong = fmt.Sprintf("uv off by %s, ranks by %s", errorCount(row.Errors.UV), errorCount(row.Errors.Ranks))
	}
	return line
}

// scale maps figures to places between the edges of a plot.
type scale struct {
	low, high, step float64 // step is for the ticks of one that is not logarithmic
	logarithmic     bool
	shape           chartShape
}

func newScale(least, most float64, logarithmic bool, shape chartShape) scale {
	if !(most > 0) || math.IsInf(most, 0) { // nothing to draw
		least, most = 1, 1
	}
	if logarithmic {
		low := math.Pow(10, math.Floor(math.Log10(least)))
		return scale{low: low, high: max(math.Pow(10, math.Ceil(math.Log10(most))), low*10), logarithmic: true, shape: shape}
	}
	wanted := 5.0 // ticks
	if shape == halfChart {
		wanted = 3
	}
	step := math.Pow(10, math.Floor(math.Log10(most)))
	for _, factor := range []float64{0.1, 0.2, 0.5, 1, 2, 5} {
		if most/(step*factor) <= wanted {
			step *= factor
			break
		}
	}
	return scale{high: math.Ceil(most/step) * step, step: step, shape: shape}
}

func (s scale) at(v float64) float64 {
	part := (v - s.low) / (s.high - s.low)
	if s.logarithmic {
		part = math.Log(max(v, s.low)/s.low) / math.Log(s.high/s.low)
	}
	return math.Round(10*(float64(s.shape.left)+float64(s.shape.right-s.shape.left)*min(max(part, 0), 1))) / 10
}

func (s scale) ticks() (ticks []tick) {
	if s.logarithmic {
		for v := s.low; v <= s.high*1.001; v *= 10 {
			ticks = append(ticks, tick{s.at(v), tickText(v)})
		}
		return ticks
	}
	for n := 0.0; n*s.step <= s.high*1.001; n++ {
		ticks = append(ticks, tick{s.at(n * s.step), tickText(n * s.step)})
	}
	return ticks
}

func tickText(v float64) string {
	if v >= 10 || v == 0 {
		return grouped(v)
	}
	return upTo(v, 4)
}
