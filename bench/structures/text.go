package structures

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteText prints the report as tables.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s keys ip_0, ip_1, …; filters of %s bits (%s); %s, %d CPUs\n\n",
		grouped(r.Keys), grouped(r.Bits), readableBytes(int64(r.Bits)/8), r.Go, r.CPUs)
	writeRows(&b, r.Rows, r.Keys)
	fmt.Fprintf(&b, "\nDistinct words: %s in a synthetic text of %s\n\n", grouped(r.Words.Distinct), grouped(r.Words.Total))
	writeRows(&b, r.Words.Rows, r.Words.Distinct)
	b.WriteByte('\n')
	for _, c := range r.Checks {
		verdict := "yes"
		if !c.Held {
			verdict = "NO "
		}
		fmt.Fprintf(&b, "%s  %s: %s\n", verdict, c.Promise, c.Got)
	}
	_, err := io.WriteString(w, b.String())
	return err
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

// grouped is 1234567 as 1,234,567.
func grouped(n int) string {
	if n < 0 {
		return "-" + grouped(-n)
	}
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

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
