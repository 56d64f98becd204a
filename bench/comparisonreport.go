package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Print writes the comparison for people at a terminal of 160 columns: a table for each workload, then what the words mean.
func (c *Comparison) Print(w io.Writer) {
	columns := narrow(c.columns())
	fmt.Fprintf(w, "\n%s\n%s; %s; seed %d\n", c.Machine, c.way(), c.repeats(), c.Seed)
	for _, workload := range c.Workloads {
		fmt.Fprintf(w, "\n%s: %s (%.0f %% first visits)\n", workload.Name, workload.About, 100*workload.First)
		rows := c.rowsOf(workload.Name)
		printRows(w, columns, rows)
		for _, fault := range c.faultsOf(rows) {
			fmt.Fprintf(w, "  ! %s %s\n", fault.Contender, fault.Text)
		}
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, contender := range c.Contenders {
		fmt.Fprintf(t, "  %s\t%s\n", contender.Name, contender.About)
	}
	fmt.Fprintln(t)
	for _, column := range columns {
		fmt.Fprintf(t, "  %s\t%s\n", column.Head, column.About)
	}
	_ = t.Flush() // w is a person's
	fmt.Fprintf(w, "\nRepeat it: %s\n", c.Command)
}

// printRows aligns the figures to the right and the names to the left, which tabwriter cannot do at once: names are padded here.
func printRows(w io.Writer, columns []column, rows []ComparisonRow) {
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
