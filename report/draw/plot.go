package draw

import (
	"fmt"
	"slices"
	"strings"
)

// The functions in this file draw for the pages of the dashboard. They only use classes and attributes, because the pages'
// content security policy allows no inline styles. Widths are percentages of the available space, so that a drawing fits any
// screen, and its text keeps its size.

// Plot is a chart with a bar for each hour, day, week or month, and a line for the numbers of an earlier period.
type Plot struct {
	Summary string // describes the chart in a sentence
	Bars    []PlotBar
	Number  func(int64) string // formats the numbers of the axis; nil: the function Number
}

// PlotBar is a bar: the visitors of a period, divided into new and returning visitors.
type PlotBar struct {
	Name          string // text below the bar, which only some bars show (see names)
	Label         string // full description of the bar, shown on hover
	Link          string // URL of the bar's link, or "". The keyboard cannot reach it, so the page repeats the link next to the plot
	Visitors, New int64
	Compared      bool  // Before is set, and the line of the earlier period continues over this bar
	Before        int64 // number of visitors in the corresponding earlier period
	OutOfRange    bool  // the bar's period is outside the selected range
	Noted         bool  // the bar's period has a note
	Imported      int64 // visitors counted by another tool, drawn on top in another color
	None          bool  // no data: the bar is a gap
}

// Sizes of a plot in pixels.
const (
	plotHigh, plotTop, plotBottom = 240, 12, 26
	plotRoom                      = plotHigh - plotTop - plotBottom
	plotNames, plotTicks          = 8, 5 // maximum numbers of names below the bars and of steps on the axis
	plotNote                      = 5    // vertical position of the mark that shows a note
	plotAxis                      = 48   // width of the axis on the left
)

// HTML returns the chart as HTML: the axis, and next to it the plot, which fills the available width.
func (p Plot) HTML() string { return p.axis() + `<div class="plot-room">` + p.plot() + "</div>" }

func (p Plot) axis() string {
	var out strings.Builder
	ticks, write := p.ticks(), p.Number
	if write == nil {
		write = Number
	}
	fmt.Fprintf(&out, `<svg class="axis" width="%d" height="%d" aria-hidden="true">`, plotAxis, plotHigh)
	for _, tick := range ticks {
		y := p.y(tick, ticks[len(ticks)-1]) + 4
		fmt.Fprintf(&out, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`, plotAxis-8, y, safe(write(tick)))
	}
	return out.String() + "</svg>"
}

func (p Plot) plot() string {
	var out strings.Builder
	ticks := p.ticks()
	top := ticks[len(ticks)-1]
	role := "img"
	if slices.ContainsFunc(p.Bars, func(b PlotBar) bool { return b.Link != "" }) {
		role = "group" // an element with the role img must not contain links
	}
	fmt.Fprintf(&out, `<svg class="plot" width="100%%" height="%d" role="%s" aria-label="%s">`, plotHigh, role, safe(p.Summary))
	out.WriteString(`<defs><pattern id="hatch" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
		`<rect class="weave" width="4" height="4"/><rect class="thread" width="1" height="4"/></pattern></defs>`)
	for _, tick := range ticks {
		y := p.y(tick, top)
		fmt.Fprintf(&out, `<line class="grid" x1="0" x2="100%%" y1="%.1f" y2="%.1[1]f"/>`, y)
	}
	for i, bar := range p.Bars {
		p.bar(&out, i, bar, top)
	}
	p.line(&out, top)
	p.names(&out)
	return out.String() + "</svg>"
}

// ticks returns the numbers of the vertical axis: round numbers, starting with 0. The last number is at least as high as every
// bar.
func (p Plot) ticks() (ticks []int64) {
	most := int64(1)
	for _, bar := range p.Bars {
		most = max(most, bar.Visitors+bar.Imported, bar.Before)
	}
	for step := int64(1); ; step *= 10 {
		for _, round := range []int64{step, 2 * step, 5 * step} {
			if most > plotTicks*round {
				continue
			}
			for tick := int64(0); tick < most+round; tick += round {
				ticks = append(ticks, tick)
			}
			return ticks
		}
	}
}

func (p Plot) y(n, top int64) float64 {
	return plotTop + plotRoom*(1-float64(n)/float64(top))
}

func (p Plot) at(i int) (x, step float64) {
	step = 100 / float64(len(p.Bars))
	return float64(i) * step, step
}

// bar draws one bar: new visitors, returning visitors above them, and on top the visitors counted by another tool. An
// invisible rectangle over the full height shows the label on hover.
func (p Plot) bar(out *strings.Builder, i int, bar PlotBar, top int64) {
	x, step := p.at(i)
	class := "bar"
	if bar.OutOfRange {
		class = "bar beside"
	}
	if bar.None {
		class += " none"
	}
	wide, left := step*0.72, x+step*0.14
	if wide > 6 { // in a plot of only a few bars, they must not become too wide
		wide, left = 6, x+step/2-3
	}
	link, end := "", ""
	if bar.Link != "" {
		link, end = `<a href="`+safe(bar.Link)+`" tabindex="-1">`, "</a>"
	}
	fmt.Fprintf(out, `<g class="%s">%s<title>%s</title><rect class="room" x="%.3f%%" y="0" width="%.3f%%" height="%d"/>`,
		class, link, safe(bar.Label), x, step, plotHigh-plotBottom)
	zero, fresh, all := p.y(0, top), p.y(bar.New, top), p.y(bar.Visitors, top)
	if bar.Visitors > bar.New {
		fmt.Fprintf(out, `<rect class="back" x="%.3f%%" y="%.1f" width="%.3f%%" height="%.1f" fill="url(#hatch)"/>`,
			left, all, wide, fresh-all)
	}
	if bar.New > 0 {
		fmt.Fprintf(out, `<rect class="new" x="%.3f%%" y="%.1f" width="%.3f%%" height="%.1f"/>`, left, fresh, wide, zero-fresh)
	}
	if bar.Imported > 0 {
		top := p.y(bar.Visitors+bar.Imported, top)
		fmt.Fprintf(out, `<rect class="others" x="%.3f%%" y="%.1f" width="%.3f%%" height="%.1f"/>`, left, top, wide, all-top)
		all = top
	}
	if bar.Noted {
		middle := x + step/2
		fmt.Fprintf(out, `<line class="noted" x1="%.3f%%" x2="%.3[1]f%%" y1="%d" y2="%.1f"/>`, middle, plotNote, max(all-3, plotNote))
		fmt.Fprintf(out, `<circle class="noted" cx="%.3f%%" cy="%d" r="4"/>`, middle, plotNote)
	}
	out.WriteString(end + "</g>")
}

// line draws the earlier period as a step line. The line has a gap at each bar that is not compared.
func (p Plot) line(out *strings.Builder, top int64) {
	out.WriteString(`<g class="before">`)
	last := 0.0
	for i, bar := range p.Bars {
		if !bar.Compared {
			continue
		}
		x, step := p.at(i)
		y := p.y(bar.Before, top)
		if i > 0 && p.Bars[i-1].Compared && last != y {
			fmt.Fprintf(out, `<line x1="%.3f%%" x2="%.3[1]f%%" y1="%.1f" y2="%.1f"/>`, x, last, y)
		}
		fmt.Fprintf(out, `<line x1="%.3f%%" x2="%.3f%%" y1="%.1f" y2="%.1[3]f"/>`, x, x+step, y)
		last = y
	}
	out.WriteString("</g>")
}

// names writes labels below some of the bars: at most plotNames, so that labels do not overlap. The page hides every
// second label on narrow screens.
func (p Plot) names(out *strings.Builder) {
	every := max((len(p.Bars)+plotNames-1)/plotNames, 1)
	for i := 0; i < len(p.Bars); i += every {
		x, step := p.at(i)
		class := "name"
		if i/every%2 == 1 {
			class = "name spare"
		}
		fmt.Fprintf(out, `<text class="%s" x="%.3f%%" y="%d" text-anchor="middle">%s</text>`,
			class, x+step/2, plotHigh-7, safe(p.Bars[i].Name))
	}
}

// safe escapes a text for HTML, but keeps narrow spaces, which separate thousands in numbers.
func safe(text string) string {
	parts := strings.Split(text, "\u202f")
	for i, part := range parts {
		parts[i] = escaped(part)
	}
	return strings.Join(parts, "\u202f")
}

// Size of a sparkline in pixels.
const sparkWide, sparkHigh = 120, 30

// Spark draws numbers as a small line with a dot at its end. room is the number of values that fill the full width. If there
// are fewer numbers, the left part stays empty.
func Spark(summary string, numbers []int64, room int) string {
	most := mostOf(numbers)
	var line strings.Builder
	at := func(i int) float64 { return 2 + (sparkWide-6)*float64(room-len(numbers)+i)/float64(max(room-1, 1)) }
	var x, y float64
	for i, n := range numbers {
		x = at(i)
		y = sparkHigh - 3 - (sparkHigh-6)*float64(n)/float64(most)
		fmt.Fprintf(&line, "%.1f,%.1f ", x, y)
	}
	points := strings.TrimSpace(line.String())
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="spark" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" aria-label="%s">`,
		sparkWide, sparkHigh, safe(summary))
	fmt.Fprintf(&out, `<polygon class="under" points="%.1f,%d %s %.1f,%[2]d"/><polyline class="line" points="%[3]s"/>`,
		at(0), sparkHigh-2, points, x)
	fmt.Fprintf(&out, `<circle class="dot" cx="%.1f" cy="%.1f" r="2.2"/></svg>`, x, y)
	return out.String()
}

// Share draws a part of a whole as a bar over the available width.
func Share(class string, part, whole int64) string {
	percent := 0.0
	if part > 0 && whole > 0 {
		percent = max(min(100*float64(part)/float64(whole), 100), 0.5)
	}
	return fmt.Sprintf(`<svg class="share %s" width="100%%" height="100%%" aria-hidden="true"><rect width="%.2f%%" height="100%%"/></svg>`,
		escaped(class), percent)
}

// Parts draws two numbers as the parts of one bar.
func Parts(first, second int64) string {
	all := float64(max(first+second, 1))
	return fmt.Sprintf(`<svg class="parts" width="100%%" height="14" aria-hidden="true">`+
		`<rect class="back" width="100%%" height="14" fill="url(#hatch)"/><rect class="new" width="%.2f%%" height="14"/></svg>`,
		100*float64(first)/all)
}
