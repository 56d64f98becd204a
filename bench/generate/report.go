package generate

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"

	"footfall/bench"
	"footfall/db"
)

// Report is what Run made.
type Report struct {
	Set
	Seconds float64     `json:"seconds"`
	Tables  []TableSize `json:"tables"`
}

// TableSize is how large a table is; all days of visits are one.
type TableSize struct {
	Name    string `json:"name"`
	Rows    int64  `json:"rows"` // about
	Heap    int64  `json:"heapBytes"`
	Indexes int64  `json:"indexBytes"`
}

func tableSizes(ctx context.Context, conn *pgx.Conn) (sizes []TableSize, err error) {
	told, err := db.New(conn).TableSizes(ctx)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	for _, t := range told {
		sizes = append(sizes, TableSize(t))
	}
	return sizes, nil
}

// Print writes the report for people at a terminal.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "app %s: %s visits over %d days by %s visitors to %s pages of %d sites, seed %d, in %.0f s\n", r.App,
		bench.Grouped(float64(r.Visits)), r.Days, bench.Grouped(float64(r.Visitors)), bench.Grouped(float64(r.Pages)), r.Sites, r.Seed, r.Seconds)
	printSizes(w, r.Tables)
}

func printSizes(w io.Writer, sizes []TableSize) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\trows\tMB\tindexes MB\t\n")
	for _, size := range sizes {
		if size.Rows > 0 {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", size.Name, bench.Grouped(float64(size.Rows)), bench.Megabytes(size.Heap), bench.Megabytes(size.Indexes))
		}
	}
	_ = t.Flush() // w is a person's
}
