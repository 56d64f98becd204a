package bench

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"

	"footfall/bench/tables"
)

// GenerateReport is what Generate made.
type GenerateReport struct {
	App      string      `json:"app"`
	Visits   int         `json:"visits"`
	Days     int         `json:"days"`
	Pages    int         `json:"pages"`
	Visitors int         `json:"visitors"`
	Sites    int         `json:"sites"`
	Seed     uint64      `json:"seed"`
	Seconds  float64     `json:"seconds"`
	Tables   []TableSize `json:"tables"`
}

// TableSize is how large a table is; all days of visits are one.
type TableSize struct {
	Name    string `json:"name"`
	Rows    int64  `json:"rows"` // about
	Heap    int64  `json:"heapBytes"`
	Indexes int64  `json:"indexBytes"`
}

func tableSizes(ctx context.Context, conn *pgx.Conn) (sizes []TableSize, err error) {
	told, err := tables.New(conn).TableSizes(ctx)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	for _, t := range told {
		sizes = append(sizes, TableSize(t))
	}
	return sizes, nil
}

// Print writes the report for people at a terminal.
func (r *GenerateReport) Print(w io.Writer) {
	fmt.Fprintf(w, "app %s: %s visits over %d days by %s visitors to %s pages of %d sites, seed %d, in %.0f s\n", r.App,
		grouped(float64(r.Visits)), r.Days, grouped(float64(r.Visitors)), grouped(float64(r.Pages)), r.Sites, r.Seed, r.Seconds)
	printSizes(w, r.Tables)
}

func printSizes(w io.Writer, sizes []TableSize) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\trows\tMB\tindexes MB\t\n")
	for _, size := range sizes {
		if size.Rows > 0 {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", size.Name, grouped(float64(size.Rows)), megabytes(size.Heap), megabytes(size.Indexes))
		}
	}
	_ = t.Flush() // w is a person's
}
