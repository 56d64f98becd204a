package draw

import (
	"bufio"
	"fmt"
	"io"
	"math"
)

// Bars is a chart with a bar for each name, one below the other.
type Bars struct {
	Title string
	Log   bool // lengths are logarithmic, from the power of ten below the least: for numbers that differ by orders of magnitude
	Rows  []Bar
}

// Bar is a number with what is written behind its bar.
type Bar struct {
	Name   string
	Value  float64
	Label  string
	Strong bool // it stands out among the others
}

// Measures of the picture, in its own units.
const (
	barsTop, barsStep, barsHigh = 48, 26, 18
	barsLeft, barsLong          = 230, 400 // the longest bar leaves the rest to its label
)

// WriteBars writes charts, one below the other, as an SVG that refers to nothing outside itself.
func WriteBars(w io.Writer, title string, charts ...Bars) error {
	high := barsTop
	for _, c := range charts {
		high += barsTop + barsStep*len(c.Rows)
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, svgHead, svgWide, high, escaped(title), svgRight, escaped(title))
	top := barsTop
	for _, c := range charts {
		c.write(out, top)
		top += barsTop + barsStep*len(c.Rows)
	}
	fmt.Fprint(out, "</svg>\n")
	return out.Flush() // returns the first error of all that was written
}

func (b Bars) write(out io.Writer, top int) {
	fmt.Fprintf(out, `<text x="%d" y="%d" font-weight="600">%s</text>`+"\n", barsLeft, top+barsHigh, escaped(b.Title))
	long := b.scale()
	for i, row := range b.Rows {
		y, class := top+(i+1)*barsStep, "all"
		if row.Strong {
			class = "new"
		}
		length := long(row.Value)
		fmt.Fprintf(out, `<text x="%d" y="%d" text-anchor="end">%s</text>`+
			`<rect class="%s" fill="%s" x="%d" y="%d" width="%.1f" height="%d"/>`+
			`<text x="%.1f" y="%[2]d">%[11]s</text>`+"\n",
			barsLeft-8, y+13, escaped(row.Name), class, fills[class], barsLeft, y, length, barsHigh, barsLeft+length+8, escaped(row.Label))
	}
}

// scale returns the length of a number's bar. Every number above 0 shows.
func (b Bars) scale() func(float64) float64 {
	least, most := math.Inf(1), 0.0
	for _, row := range b.Rows {
		if row.Value > 0 {
			least, most = min(least, row.Value), max(most, row.Value)
		}
	}
	low := math.Pow(10, math.Ceil(math.Log10(least))-1)
	return func(value float64) float64 {
		switch {
		case value <= 0:
			return 0
		case b.Log:
			return max(barsLong*math.Log(value/low)/math.Log(most/low), 1)
		}
		return max(barsLong*value/most, 1)
	}
}
