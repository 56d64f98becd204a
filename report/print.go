package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"footfall/report/draw"
)

// Format is how an answer is written.
type Format int

// The formats.
const (
	Text Format = iota // for people: titles, tables and bars
	JSON
	CSV
	SVG // a drawing, of days alone
)

// Answer is what somebody asked for, ready to be written. Its fields are what JSON says.
type Answer interface {
	rows() (header []string, rows [][]any)
	text(s draw.Style) string
}

// Print writes an answer. The style matters to text; on a terminal nothing stored is written raw in
// any format.
func Print(w io.Writer, a Answer, f Format, s draw.Style) error {
	if f == Text {
		_, err := io.WriteString(w, a.text(s))
		return err
	}
	var out bytes.Buffer
	if err := encode(&out, a, f); err != nil {
		return err
	}
	if s.Width == 0 {
		_, err := out.WriteTo(w)
		return err
	}
	for line := range strings.Lines(out.String()) {
		if _, err := fmt.Fprintln(w, draw.Text(strings.TrimSuffix(line, "\n"))); err != nil {
			return err
		}
	}
	return nil
}

func encode(w io.Writer, a Answer, f Format) error {
	switch f {
	case CSV:
		_, err := io.WriteString(w, csv(a.rows()))
		return err
	case SVG:
		days, drawn := a.(dayByDay)
		if !drawn {
			return errors.New("only days can be drawn")
		}
		return draw.WriteSVG(w, days.chart())
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(a)
}

// say is fmt.Sprintf for a text in which nothing stored stays raw.
func say(format string, values ...any) string {
	for i, value := range values {
		values[i] = draw.Text(fmt.Sprint(value))
	}
	return fmt.Sprintf(format, values...)
}
