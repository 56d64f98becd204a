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
	text(w io.Writer, s draw.Style) error
}

// Print writes an answer. The style matters to text; on a terminal nothing stored is written raw in
// any format.
func Print(w io.Writer, a Answer, f Format, s draw.Style) error {
	if f == Text {
		return a.text(w, s)
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
		header, rows := a.rows()
		return WriteCSV(w, header, rows)
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

// say writes a line of text in which nothing stored stays raw.
func say(w io.Writer, format string, values ...any) error {
	for i, value := range values {
		values[i] = draw.Text(fmt.Sprint(value))
	}
	_, err := fmt.Fprintf(w, format, values...)
	return err
}

func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return draw.Number(n) + " " + what + "s"
}
