package structures

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
)

// WriteSVG draws memory, time and errors as bars. The picture needs nothing beside itself.
func (r Report) WriteSVG(w io.Writer) error {
	memory := chart{title: "Memory", axis: "bytes, logarithmic", log: true, tick: tickBytes}
	speed := chart{title: "Time of one check-and-add, making the key apart where that is possible", axis: "nanoseconds",
		tick: func(v float64) string { return fmt.Sprintf("%g", v) }}
	wrong := chart{title: "Keys counted wrongly", axis: "share of the keys, logarithmic", log: true,
		tick: tickPercent}
	for _, row := range r.Rows {
		memory.bars = append(memory.bars, bar{row.Name, float64(row.Bytes), readableBytes(row.Bytes)})
		label := fmt.Sprintf("%.0f ns", row.AddNs)
		if row.KeyNs != nil {
			label += fmt.Sprintf(" (and %.0f for the key)", *row.KeyNs)
		}
		speed.bars = append(speed.bars, bar{row.Name, row.AddNs, label})
		label = fmt.Sprintf("%s keys, estimated", grouped(row.Count-r.Keys))
		if row.FalsePositives != nil {
			label = fmt.Sprintf("%s false positives", grouped(*row.FalsePositives))
		}
		if row.Error == 0 {
			label = "none"
		}
		wrong.bars = append(wrong.bars, bar{row.Name, math.Abs(row.Error), label})
	}
	var b strings.Builder
	height := 60
	for _, c := range []chart{memory, speed, wrong} {
		height += c.height()
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" `+
		`font-family="system-ui, sans-serif" font-size="13" fill="#24292f">`+"\n", chartWidth, height, chartWidth, height)
	b.WriteString(`<rect width="100%" height="100%" fill="#ffffff"/>` + "\n")
	fmt.Fprintf(&b, `<text x="20" y="34" font-size="18" font-weight="600">Was this key seen before? %s keys</text>`+"\n", grouped(r.Keys))
	y := 60
	for _, c := range []chart{memory, speed, wrong} {
		c.draw(&b, y)
		y += c.height()
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// chart is a stack of horizontal bars over one axis.
type chart struct {
	title, axis string
	log         bool
	tick        func(float64) string
	bars        []bar
}

type bar struct {
	name  string
	value float64
	label string
}

const (
	chartWidth = 920
	plotLeft   = 230
	plotRight  = 700 // what is beyond belongs to the labels of the longest bars
	barStep    = 26
)

func (c chart) height() int { return 40 + barStep*len(c.bars) + 62 }

func (c chart) draw(b *strings.Builder, top int) {
	ticks := c.ticks()
	low, high := ticks[0], ticks[len(ticks)-1]
	x := func(value float64) float64 {
		at := (value - low) / (high - low)
		if c.log {
			at = math.Log(value/low) / math.Log(high/low)
		}
		return plotLeft + (plotRight-plotLeft)*min(max(at, 0), 1)
	}
	fmt.Fprintf(b, `<text x="20" y="%d" font-weight="600">%s</text>`+"\n", top+20, escape(c.title))
	first, bottom := top+36, top+40+barStep*len(c.bars)
	for _, tick := range ticks {
		fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#d8dee4"/>`+
			`<text x="%.1f" y="%d" font-size="11" text-anchor="middle" fill="#57606a">%s</text>`+"\n",
			x(tick), x(tick), first, bottom, x(tick), bottom+15, escape(c.tick(tick)))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" font-size="11" text-anchor="middle" fill="#57606a">%s</text>`+"\n",
		(plotLeft+plotRight)/2, bottom+32, escape(c.axis))
	for i, bar := range c.bars {
		y, width := first+6+i*barStep, 0.0
		if bar.value > 0 {
			width = max(x(bar.value)-plotLeft, 1)
		}
		color := "#8c959f"
		if strings.HasPrefix(bar.name, nameFootfall) {
			color = "#0969da"
		}
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+
			`<rect x="%d" y="%d" width="%.1f" height="%d" rx="2" fill="%s"/>`+
			`<text x="%.1f" y="%d" font-size="12" stroke="#ffffff" stroke-width="4" paint-order="stroke">%s</text>`+"\n",
			plotLeft-8, y+13, escape(bar.name), plotLeft, y, width, barStep-8, color, plotLeft+width+6, y+13, escape(bar.label))
	}
	fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="#57606a"/>`+"\n", plotLeft, plotLeft, first, bottom)
}

// ticks covers all values: powers of ten where the axis is logarithmic, else steps of 1, 2 or 5 times one.
func (c chart) ticks() (ticks []float64) {
	low, high := math.Inf(1), 0.0
	for _, bar := range c.bars {
		if bar.value > 0 {
			low, high = min(low, bar.value), max(high, bar.value)
		}
	}
	if high == 0 {
		return []float64{1, 10}
	}
	if c.log {
		first, last := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
		if first == math.Log10(low) {
			first-- // or the smallest bar would have no length
		}
		for e := first; e <= max(last, first+1); e++ {
			ticks = append(ticks, math.Pow(10, e))
		}
		return ticks
	}
	step := math.Pow(10, math.Floor(math.Log10(high)))
	for _, factor := range []float64{0.2, 0.5, 1} {
		if high/(step*factor) <= 8 {
			step *= factor
			break
		}
	}
	for v := 0.0; v < high+step; v += step {
		ticks = append(ticks, v)
	}
	return ticks
}

// tickBytes labels a power of ten.
func tickBytes(v float64) string {
	unit := 0
	for ; v >= 1000 && unit < 3; unit++ {
		v /= 1000
	}
	return fmt.Sprintf("%.0f %s", v, []string{"B", "KB", "MB", "GB"}[unit])
}

// tickPercent labels a power of ten with as many decimals as it takes.
func tickPercent(v float64) string {
	return fmt.Sprintf("%.*f %%", max(0, int(math.Round(-math.Log10(v)))-2), v*100)
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder cannot fail
	return b.String()
}
