package draw

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
)

// Chart is a chart with a bar for each day, week or month, and in the bar the part of new visitors.
type Chart struct {
	Title  string
	Period string // day, week or month
	Bars   []ChartBar
}

// ChartBar is the visitors of a period, the new ones among them, and their visits.
type ChartBar struct {
	Name                  string // below the bar
	Label                 string // which period it is, in full
	Visitors, New, Visits int64
}

// Measures of the picture, in its own units.
const (
	svgWide, svgHigh   = 860, 320
	svgLeft, svgRight  = 64, 16
	svgTop, svgBottom  = 64, 40
	svgPlotWide        = svgWide - svgLeft - svgRight
	svgPlotHigh        = svgHigh - svgTop - svgBottom
	svgTicks, svgNames = 4, 8 // at most
	svgTitleLength     = 78   // columns; longer titles are cut
	svgWidest          = 48.0 // of a bar, where there are few
)

// The colours of a picture are attributes: programs other than browsers understand nothing else. A
// style, which overrides attributes, lets browsers choose others in the dark.
const (
	paper, ink, faint = "#fff", "#24292f", "#d0d7de"
	allFill, newFill  = "#9ec5fe", "#0a58ca"
)

var fills = map[string]string{"all": allFill, "new": newFill}

const svgHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" ` +
	`font-family="system-ui, sans-serif" font-size="12" fill="` + ink + `" role="img" aria-labelledby="title">
<style>
  svg { color-scheme: light dark; --paper: ` + paper + `; --ink: ` + ink + `; --faint: ` + faint + `; --all: ` + allFill + `; --new: ` + newFill + ` }
  @media (prefers-color-scheme: dark) { svg { --paper: #0d1117; --ink: #e6edf3; --faint: #30363d; --all: #234a84; --new: #79b8ff } }
  .paper { fill: var(--paper) } text { fill: var(--ink) } line { stroke: var(--faint) }
  .all { fill: var(--all) } .new { fill: var(--new) }
</style>
<title id="title">%[3]s</title>
<rect class="paper" fill="` + paper + `" width="%[1]d" height="%[2]d"/>
<text x="%[4]d" y="26" font-size="15" font-weight="600">%[5]s</text>
`

// WriteSVG writes a chart as an SVG that refers to nothing outside itself.
func WriteSVG(w io.Writer, c Chart) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, svgHead, svgWide, svgHigh, escaped(c.Title), svgLeft, escaped(Style{}.cut(Text(c.Title), svgTitleLength)))
	for i, name := range []string{"all", "new"} {
		fmt.Fprintf(out, `<rect class="%s" fill="%s" x="%d" y="40" width="10" height="10"/><text x="%d" y="49">%s</text>`+"\n",
			name, fills[name], svgLeft+i*160, svgLeft+i*160+16, escaped([]string{"visitors of the " + c.Period, "new among them"}[i]))
	}
	top := c.top()
	for tick := int64(0); tick <= top; tick += top / min(svgTicks, top) {
		y := svgTop + svgPlotHigh*(1-float64(tick)/float64(top))
		fmt.Fprintf(out, `<line stroke="`+faint+`" x1="%d" x2="%d" y1="%.1f" y2="%.1[3]f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			svgLeft, svgWide-svgRight, y, svgLeft-8, y+4, Number(tick))
	}
	c.bars(out, top)
	fmt.Fprint(out, "</svg>\n")
	return out.Flush() // returns the first error of all that was written
}

func (c Chart) bars(out io.Writer, top int64) {
	step := svgPlotWide / float64(max(len(c.Bars), 1))
	width := min(max(step*0.8, 0.5), svgWidest)
	every := max((len(c.Bars)+svgNames-1)/svgNames, 1)
	for i, bar := range c.Bars {
		x := svgLeft + float64(i)*step + (step-width)/2
		fmt.Fprintf(out, `<g><title>%s: %s, %s of them new; %s</title>`, escaped(bar.Label), Count(bar.Visitors, "visitor"), Number(bar.New), Count(bar.Visits, "visit"))
		for _, part := range []struct {
			class string
			n     int64
		}{{"all", bar.Visitors}, {"new", bar.New}} {
			high := svgPlotHigh * float64(part.n) / float64(top)
			fmt.Fprintf(out, `<rect class="%s" fill="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, part.class, fills[part.class], x, svgTop+svgPlotHigh-high, width, high)
		}
		fmt.Fprintln(out, `</g>`)
		if i%every == 0 {
			fmt.Fprintf(out, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x+width/2, svgHigh-svgBottom+18, escaped(bar.Name))
		}
	}
}

// top returns where the axis ends: a round number that the ticks divide, not less than any bar.
func (c Chart) top() int64 {
	most := int64(1)
	for _, bar := range c.Bars {
		most = max(most, bar.Visitors)
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
