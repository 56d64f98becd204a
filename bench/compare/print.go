package compare

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Print writes the comparison for people at a terminal of 160 columns: a table for each workload,
// then what the words mean.
func (r *Report) Print(w io.Writer) {
	columns := r.columns()
	fmt.Fprintf(w, "\n%s\n%s\n", r.Machine, r.way())
	for _, load := range r.Loads {
		fmt.Fprintf(w, "\n%s: %s (%.0f %% first visits)\n", load.Name, load.About, 100*load.First)
		rows := r.rowsOf(load.Name)
		printRows(w, columns, rows)
		for _, row := range rows {
			if fault := r.faultOf(row); fault != "" {
				fmt.Fprintf(w, "  ! %s\n", fault)
			}
		}
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, contender := range r.Contenders {
		fmt.Fprintf(t, "  %s\t%s\n", contender.Name, contender.About)
	}
	fmt.Fprintln(t)
	for _, column := range columns {
		fmt.Fprintf(t, "  %s\t%s\n", column.Head, column.About)
	}
	_ = t.Flush() // w is a person's
	fmt.Fprintf(w, "\nRepeat it: %s\n", r.Command)
}

// printRows aligns the figures to the right and the names to the left, which tabwriter cannot do at
// once: names are padded here.
func printRows(w io.Writer, columns []column, rows []Row) {
	width := len("contender")
	for _, row := range rows {
		width = max(width, len(row.Contender))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(name string, cell func(column) string) {
		fmt.Fprint(t, name, strings.Repeat(" ", width-len(name)), "\t")
		for _, column := range columns {
			fmt.Fprint(t, cell(column), "\t")
		}
		fmt.Fprintln(t)
	}
	line("contender", func(c column) string { return c.Head })
	for _, row := range rows {
		line(row.Contender, func(c column) string { return c.cell(row) })
	}
	_ = t.Flush() // w is a person's
}
