package draw

import (
	"fmt"
	"slices"
	"strings"
)

// Table is a table with aligned columns. A row has a value for each column: a string, an int64, or another value that
// fmt can print.
type Table struct {
	Columns []Column
	Rows    [][]any
}

// Column is a column of a table. Numbers are aligned right, other values left.
type Column struct {
	Name     string
	Bar      bool // a bar follows each number of the column
	MayBeCut bool // texts of the column may be cut on narrow terminals
}

const (
	gapWidth  = 2
	leastWide = 16 // minimum width of a column whose texts may be cut
	mostWide  = 40 // if the output is no terminal, a column whose texts may be cut is padded to at most this width
)

type cell struct {
	text  string
	right bool
	bar   string // the number as a bar, if the column has bars
}

// Text returns the table with one line per row.
func (t Table) Text(s Style) string {
	bars := barWidth
	if s.Width > 0 && s.Width < 80 {
		bars = barNarrow
	}
	cells := t.cells(s, bars)
	widths := t.widths(cells)
	t.narrow(widths, bars, s.Width)
	var out strings.Builder
	for _, row := range cells {
		var line strings.Builder
		for i, c := range row {
			text := c.text
			if t.Columns[i].MayBeCut && s.Width > 0 {
				text = s.cut(text, widths[i])
			}
			pad := strings.Repeat(" ", max(widths[i]-Columns(text), 0))
			if c.right {
				line.WriteString(pad + text)
			} else {
				line.WriteString(text + pad)
			}
			if t.Columns[i].Bar {
				line.WriteString(" " + c.bar + strings.Repeat(" ", bars-Columns(c.bar)))
			}
			line.WriteString(strings.Repeat(" ", gapWidth))
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return out.String()
}

// cells returns the column names and the rows, as text.
func (t Table) cells(s Style, bars int) [][]cell {
	most := make([]int64, len(t.Columns))
	numeric := make([]bool, len(t.Columns))
	for _, row := range t.Rows {
		for i, value := range row {
			if n, is := value.(int64); is {
				most[i], numeric[i] = max(most[i], n), true
			}
		}
	}
	names := make([]any, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	cells := make([][]cell, 0, len(t.Rows)+1)
	for _, row := range append([][]any{names}, t.Rows...) {
		line := make([]cell, len(row))
		for i, value := range row {
			line[i].right = numeric[i]
			if n, is := value.(int64); is {
				line[i].text, line[i].bar = Number(n), s.bar(n, most[i], bars)
			} else {
				line[i].text = Text(fmt.Sprint(value))
			}
		}
		cells = append(cells, line)
	}
	return cells
}

func (t Table) widths(cells [][]cell) []int {
	widths := make([]int, len(t.Columns))
	for _, row := range cells {
		for i, c := range row {
			widths[i] = max(widths[i], Columns(c.text))
		}
	}
	return widths
}

// narrow reduces the widths of columns whose texts may be cut, the last column first. It stops when lines fit into a terminal
// with this number of columns (0: no terminal).
func (t Table) narrow(widths []int, bars, columns int) {
	total := -gapWidth
	for i, c := range t.Columns {
		total += widths[i] + gapWidth
		if c.Bar {
			total += 1 + bars
		}
	}
	for i, c := range slices.Backward(t.Columns) {
		switch {
		case !c.MayBeCut:
		case columns == 0:
			widths[i] = min(widths[i], mostWide)
		case total > columns:
			less := min(widths[i], max(widths[i]-(total-columns), leastWide))
			total -= widths[i] - less
			widths[i] = less
		}
	}
}
