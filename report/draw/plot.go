package draw

import (
	"fmt"
	"slices"
	"strings"
)

// What follows draws into a page: with classes and attributes alone, for a page whose policy knows
// no style but its own sheet. Widths are parts of the room that the page gives, so that a drawing
// fits any screen and its letters stay as large as they are.

// Plot is a chart in a page: a bar for each day, week or month, and behind it the line of what it
// is compared with.
type Plot struct {
	Summary string // what the chart shows, in a sentence
	Bars    []PlotBar
	Number  func(int64) string // writes those of the axis; nil: Number
}

// PlotBar is a bar: the visitors of a period, the new ones among them.
type PlotBar struct {
	Name          string // below the bar
	Label         string // what it shows, in full
	Link          string // where it leads to; "": nowhere. The keyboard has what leads there beside the plot
	Visitors, New int64
	Compared      bool  // it has a Before
	Before        int64 // visitors of the period that it is compared with
	Beside        bool  // it is not what was asked for, but beside it
	Noted         bool  // something was noted of it
	Told          int64 // others have counted so many, which stand upon it in another shade
	None          bool  // there is no count: the bar is a gap
}

// Measures of a plot in pixels.
const (
	plotHigh, plotTop, plotBottom = 240, 12, 26
	plotRoom                      = plotHigh - plotTop - plotBottom
	plotNames, plotTicks          = 8, 5 // at most
	plotNote                      = 5    // where the mark of a note is
	plotAxis                      = 48   // how wide its axis is
)

// HTML draws a chart: its axis, and beside it the plot, which is as wide as there is room.
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
		role = "group" // an image has no links
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

// ticks are round numbers from 0 on, of which the last is not below any bar.
func (p Plot) ticks() (ticks []int64) {
	most := int64(1)
	for _, bar := range p.Bars {
		most = max(most, bar.Visitors+bar.Told, bar.Before)
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

// bar draws the new visitors, and upon them those who returned, in a room in which the pointer
// finds what they are.
func (p Plot) bar(out *strings.Builder, i int, bar PlotBar, top int64) {
	x, step := p.at(i)
	class := "bar"
	if bar.Beside {
		class = "bar beside"
	}
	if bar.None {
		class += " none"
	}
	wide, left := step*0.72, x+step*0.14
	if wide > 6 { // of a few bars, none is a wall
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
	if bar.Told > 0 {
		top := p.y(bar.Visitors+bar.Told, top)
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

// line draws what bars are compared with, as a line of steps, with gaps where one is not.
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

// names writes what some of the bars are called: every second of these is left out where there is
// little room.
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

// safe makes a text safe, and leaves the narrow spaces in its numbers as they are.
func safe(text string) string {
	parts := strings.Split(text, "\u202f")
	for i, part := range parts {
		parts[i] = escaped(part)
	}
	return strings.Join(parts, "\u202f")
}

// Measures of a spark in pixels.
const sparkWide, sparkHigh = 120, 30

// Spark draws numbers as a small line, which ends where there is room for so many; the last one has
// a dot.
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

// Share draws a part of a whole as a bar as wide as there is room.
func Share(class string, part, whole int64) string {
	percent := 0.0
	if part > 0 && whole > 0 {
		percent = max(min(100*float64(part)/float64(whole), 100), 0.5)
	}
	return fmt.Sprintf(`<svg class="share %s" width="100%%" height="100%%" aria-hidden="true"><rect width="%.2f%%" height="100%%"/></svg>`,
		escaped(class), percent)
}

// Parts draws two numbers as parts of one bar.
func Parts(first, second int64) string {
	all := float64(max(first+second, 1))
	return fmt.Sprintf(`<svg class="parts" width="100%%" height="14" aria-hidden="true">`+
		`<rect class="back" width="100%%" height="14" fill="url(#hatch)"/><rect class="new" width="%.2f%%" height="14"/></svg>`,
		100*float64(first)/all)
}
