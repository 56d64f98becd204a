package draw

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
)

// Chart is a chart with a bar for each day, and in the bar the part of new visitors.
type Chart struct {
	Title string
	Days  []ChartDay
}

// ChartDay is a bar: the visitors of a day like 20190629, the new ones among them, and the visits.
type ChartDay struct {
	Day          int32
	PV, New, Hot int64
}

// Measures of the picture, in its own units.
const (
	svgWide, svgHigh      = 860, 320
	svgLeft, svgRight     = 64, 16
	svgTop, svgBottom     = 64, 40
	svgPlotWide           = svgWide - svgLeft - svgRight
	svgPlotHigh           = svgHigh - svgTop - svgBottom
	svgTicks, svgDayNames = 4, 8 // at most
	svgTitleLength        = 78   // columns; longer titles are cut
	svgWidest             = 48.0 // of a bar, where there are few
)

const svgHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-labelledby="title">
<style>
  svg { color-scheme: light dark; font: 12px system-ui, sans-serif; --paper: #fff; --ink: #24292f; --faint: #d0d7de; --all: #9ec5fe; --new: #0a58ca }
  @media (prefers-color-scheme: dark) { svg { --paper: #0d1117; --ink: #e6edf3; --faint: #30363d; --all: #234a84; --new: #79b8ff } }
  .paper { fill: var(--paper) } text { fill: var(--ink) } .title { font-size: 15px; font-weight: 600 } line { stroke: var(--faint) }
  .all { fill: var(--all) } .new { fill: var(--new) }
</style>
<title id="title">%[3]s</title>
<rect class="paper" width="%[1]d" height="%[2]d"/>
<text class="title" x="%[4]d" y="26">%[5]s</text>
`

// WriteSVG writes a chart as an SVG that refers to nothing outside itself.
func WriteSVG(w io.Writer, c Chart) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, svgHead, svgWide, svgHigh, escaped(c.Title), svgLeft, escaped(Style{}.cut(Text(c.Title), svgTitleLength)))
	for i, name := range []string{"all", "new"} {
		fmt.Fprintf(out, `<rect class="%s" x="%d" y="40" width="10" height="10"/><text x="%d" y="49">%s</text>`+"\n",
			name, svgLeft+i*140, svgLeft+i*140+16, []string{"visitors of the day", "new among them"}[i])
	}
	top := c.top()
	for tick := int64(0); tick <= top; tick += top / min(svgTicks, top) {
		y := svgTop + svgPlotHigh*(1-float64(tick)/float64(top))
		fmt.Fprintf(out, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1[3]f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			svgLeft, svgWide-svgRight, y, svgLeft-8, y+4, Number(tick))
	}
	c.bars(out, top)
	fmt.Fprint(out, "</svg>\n")
	return out.Flush() // returns the first error of all that was written
}

func (c Chart) bars(out io.Writer, top int64) {
	step := svgPlotWide / float64(max(len(c.Days), 1))
	width := min(max(step*0.8, 0.5), svgWidest)
	every := max((len(c.Days)+svgDayNames-1)/svgDayNames, 1)
	for i, d := range c.Days {
		x := svgLeft + float64(i)*step + (step-width)/2
		fmt.Fprintf(out, `<g><title>%s: %s visitors, %s of them new; %s visits</title>`, Day(d.Day), Number(d.PV), Number(d.New), Number(d.Hot))
		for _, part := range []struct {
			class string
			n     int64
		}{{"all", d.PV}, {"new", d.New}} {
			high := svgPlotHigh * float64(part.n) / float64(top)
			fmt.Fprintf(out, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, part.class, x, svgTop+svgPlotHigh-high, width, high)
		}
		fmt.Fprintln(out, `</g>`)
		if i%every == 0 {
			fmt.Fprintf(out, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x+width/2, svgHigh-svgBottom+18, Day(d.Day))
		}
	}
}

// top returns where the axis ends: a round number that the ticks divide, not less than any bar.
func (c Chart) top() int64 {
	most := int64(1)
	for _, d := range c.Days {
		most = max(most, d.PV)
	}
	if most <= svgTicks {
		return most
	}
	unit := math.Pow10(int(math.Log10(float64(most) / svgTicks)))
	for _, round := range []float64{1, 2, 2.5, 5, 10} {
		step := int64(math.Ceil(round * unit))
		if step*svgTicks >= most {
			return step * svgTicks
		}
	}
	return most // is not reached, since ten units are more
}

// escaped makes a text safe in XML, on one line.
func escaped(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(Text(text))) // a strings.Builder refuses nothing
	return out.String()
}
