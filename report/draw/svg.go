package draw

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// Sizes of an SVG picture, in the units of its viewBox.
const (
	svgWide, svgHigh  = 860, 320
	svgLeft, svgRight = 64, 16
	svgPlotTop        = svgHigh - plotHigh - 16
	svgTitleLength    = 78 // maximum width of the title in characters; a longer title is cut
)

// A picture's colors are attributes, because programs other than browsers may ignore style elements. In browsers, a style
// element replaces these colors in dark mode.
const (
	paper, ink, faint = "#fff", "#24292f", "#d0d7de"
	allFill, newFill  = "#9ec5fe", "#0a58ca"
)

// coloured adds colors to the elements of a plot. On the dashboard's pages, the style sheet colors them instead.
var coloured = strings.NewReplacer(
	`class="room"`, `class="room" fill="none"`, `class="weave"`, `class="weave" fill="`+allFill+`"`,
	`class="thread"`, `class="thread" fill="`+newFill+`"`, `class="new"`, `class="new" fill="`+newFill+`"`,
	`class="grid"`, `class="grid" stroke="`+faint+`"`, `class="noted"`, `class="noted" fill="`+ink+`" stroke="`+ink+`"`,
	`class="before"`, `class="before" stroke="`+ink+`"`,
	`class="others"`, `class="others" fill="`+ink+`" fill-opacity=".35"`)

const svgHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" ` +
	`font-family="system-ui, sans-serif" font-size="12" fill="` + ink + `" role="img" aria-labelledby="title">
<style>
  svg { color-scheme: light dark; --paper: ` + paper + `; --ink: ` + ink + `; --faint: ` + faint + ` }
  svg { --all: ` + allFill + `; --new: ` + newFill + ` }
  @media (prefers-color-scheme: dark) { svg { --paper: #0d1117; --ink: #e6edf3; --faint: #30363d; --all: #234a84; --new: #79b8ff } }
  .paper { fill: var(--paper) } text { fill: var(--ink) } line { stroke: var(--faint) } .before line { stroke: var(--ink) }
  .new, .thread { fill: var(--new) } .weave { fill: var(--all) } .room { fill: none }
  .others { fill: var(--ink) } .none .room { fill: var(--faint); opacity: .3 }
</style>
<title id="title">%[3]s</title>
<rect class="paper" fill="` + paper + `" width="%[1]d" height="%[2]d"/>
<text x="%[4]d" y="26" font-size="15" font-weight="600">%[5]s</text>
`

// SVG returns a plot as a picture that needs no other files.
func (p Plot) SVG(title string) string {
	return fmt.Sprintf(svgHead, svgWide, svgHigh, escaped(title), svgLeft, escaped(Style{}.cut(Text(title), svgTitleLength))) +
		fmt.Sprintf(`<text x="%d" y="46">%s</text>`+"\n", svgLeft, safe(p.Summary)) +
		fmt.Sprintf(`<svg x="%d" y="%d">%s</svg><svg x="%d" y="%d" width="%d">%s</svg></svg>`+"\n",
			svgLeft-plotAxis, svgPlotTop, p.axis(), svgLeft, svgPlotTop, svgWide-svgLeft-svgRight, coloured.Replace(p.plot()))
}

// escaped escapes a text for XML, on one line.
func escaped(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(Text(text))) // a strings.Builder never fails
	return out.String()
}
