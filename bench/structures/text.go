package structures

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"footfall/report/draw"
)

// Print writes the report as tables.
func (r *Report) Print(w io.Writer) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s keys ip_0, ip_1, …; filters of %s bits (%s); %s, %d CPUs\n\n",
		grouped(r.Keys), grouped(r.Bits), readableBytes(int64(r.Bits)/8), r.Go, r.CPUs)
	writeRows(&b, r.Rows, r.Keys)
	b.WriteByte('\n')
	for _, c := range r.Checks {
		verdict := "yes"
		if !c.Held {
			verdict = "NO "
		}
		fmt.Fprintf(&b, "%s  %s: %s\n", verdict, c.Promise, c.Got)
	}
	_, _ = io.WriteString(w, b.String()) // w is a person's
}

func writeRows(b *strings.Builder, rows []Row, keys int) {
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "memory\tbytes/key\tkey ns\tadd ns\tfalse pos.\tcount\terror\t  structure\t")
	for _, row := range rows {
		key, wrong := "(in add)", "–"
		if row.KeyNs != nil {
			key = fmt.Sprintf("%.0f", *row.KeyNs)
		}
		if row.FalsePositives != nil {
			wrong = grouped(*row.FalsePositives)
		}
		fmt.Fprintf(table, "%s\t%.3g\t%s\t%.0f\t%s\t%s\t%s\t  %s\t\n", readableBytes(row.Bytes),
			float64(row.Bytes)/float64(keys), key, row.AddNs, wrong, grouped(row.Count), readablePercent(row.Error), row.Name)
	}
	_ = table.Flush() // a strings.Builder cannot fail
	b.WriteByte('\n')
	for _, row := range rows {
		fmt.Fprintf(b, "  %s: %s\n", row.Name, row.Stores)
	}
}

func grouped(n int) string { return draw.Number(int64(n)) }

func readableBytes(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 10_000_000:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	default:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
}

// readablePercent has two digits that mean something, however small the share is.
func readablePercent(share float64) string {
	if share == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%+.2g %%", share*100)
}
