package structures

import (
	"fmt"
	"io"
	"math"

	"footfall/report/draw"
)

// WriteSVG draws memory, time and errors as bars: three pictures, one below the other.
func (r *Report) WriteSVG(w io.Writer) error {
	memory := draw.Bars{Title: "Memory, on a logarithmic scale", Log: true}
	speed := draw.Bars{Title: "Time of one check-and-add, making the key apart where that is possible"}
	wrong := draw.Bars{Title: "Keys counted wrongly, on a logarithmic scale", Log: true}
	for _, row := range r.Rows {
		add := func(to *draw.Bars, value float64, label string) {
			to.Rows = append(to.Rows, draw.Bar{Name: row.Name, Value: value, Label: label, Strong: row.Name == nameFootfall || row.Name == nameTwoCores})
		}
		add(&memory, float64(row.Bytes), readableBytes(row.Bytes))
		label := fmt.Sprintf("%.0f ns", row.AddNs)
		if row.KeyNs != nil {
			label += fmt.Sprintf(" (and %.0f for the key)", *row.KeyNs)
		}
		add(&speed, row.AddNs, label)
		label = fmt.Sprintf("%s keys, estimated", grouped(row.Count-r.Keys))
		if row.FalsePositives != nil {
			label = fmt.Sprintf("%s false positives", grouped(*row.FalsePositives))
		}
		if row.Error == 0 {
			label = "none"
		}
		add(&wrong, math.Abs(row.Error), label)
	}
	return draw.WriteBars(w, fmt.Sprintf("Was this key seen before? %s keys", grouped(r.Keys)), memory, speed, wrong)
}
