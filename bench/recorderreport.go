package bench

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"footfall/db"
	"footfall/visit"
)

// RecorderReport is what Recorder measured.
type RecorderReport struct {
	Machine Machine          `json:"machine"`
	Visits  int              `json:"visits"` // of each round
	Clients int              `json:"clients"`
	Samples []RecorderSample `json:"samples"`
	Plans   []Plan           `json:"plans,omitempty"`
}

// RecorderSample is one round.
type RecorderSample struct {
	Preload    int     `json:"preload"` // rows of visitors before the first round
	Round      int     `json:"round"`
	PerSecond  float64 `json:"perSecond"`
	MeanBatch  float64 `json:"meanBatch"`
	P50Ms      float64 `json:"p50Ms"`
	P99Ms      float64 `json:"p99Ms"`
	TableBytes float64 `json:"tableBytes"` // for each new (visitor, target, day): its rows in visitors and visits
	IndexBytes float64 `json:"indexBytes"` // the same in their indexes
}

func (s RecorderSample) String() string {
	return fmt.Sprintf("%d rows before: %.0f visits/s, batches of %.0f, p50 %.1f ms, p99 %.1f ms, %.0f + %.0f bytes a key",
		s.Preload, s.PerSecond, s.MeanBatch, s.P50Ms, s.P99Ms, s.TableBytes, s.IndexBytes)
}

// Plan is how the server ran one of the write path's statements.
type Plan struct {
	Preload   int    `json:"preload"`
	Statement string `json:"statement"`
	Text      string `json:"text"`
}

// explained is how many (target, visitor) rows the batch has whose plans are printed.
const explained = 500

// longArray is a parameter as a plan repeats it, with every row of the batch.
var longArray = regexp.MustCompile(`'\{([^'}]{20})[^'}]*\}'`)

// explain adds the plans of the two statements to the report, for a batch of new visitors that is taken back.
func explain(ctx context.Context, s *subject, report *RecorderReport) error {
	ids, err := internTargets(ctx, s.db)
	if err != nil {
		return err
	}
	today := visit.DayOf(time.Now(), time.UTC)
	if _, err := s.db.VisitsDayMake(ctx, today); err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	targets, hots := []int64{ids[site]}, []int64{explained / 2}
	var rows db.VisitsRecordParams
	for i := range explained / 2 {
		page := ids[pageURI(i)]
		targets, hots = append(targets, page), append(hots, 1)
		rows.Pages = append(rows.Pages, ids[site], page)
		visitor := addressOf(addresses - 1 - i) // nobody else's
		rows.Ips = append(rows.Ips, visitor, visitor)
	}
	rows.Days, rows.Hinted, rows.Believed = make([]int32, explained), make([]bool, explained), make([]bool, explained)
	for i := range rows.Days {
		rows.Days[i] = today
	}
	conn, err := connect(ctx, s.address)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	tx, err := conn.Begin(ctx)
	if err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	for _, statement := range []struct {
		name, text string
		args       []any
	}{
		{"CountersLock", db.CountersLock, []any{targets, hots, make([]int64, len(targets))}},
		{"VisitsRecord", db.VisitsRecord, []any{rows.Pages, rows.Ips, rows.Days, rows.Hinted, rows.Believed}},
	} {
		found, err := tx.Query(ctx, "EXPLAIN (ANALYZE, BUFFERS) "+statement.text, statement.args...)
		if err != nil {
			return fmt.Errorf("explain %s: %w", statement.name, err)
		}
		lines, err := pgx.CollectRows(found, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("explain %s: %w", statement.name, err)
		}
		text := longArray.ReplaceAllString(strings.Join(lines, "\n"), "'{$1…}'")
		report.Plans = append(report.Plans, Plan{s.preload, statement.name, text})
	}
	return nil
}

// Print writes the report for people.
func (r *RecorderReport) Print(w io.Writer) {
	for _, plan := range r.Plans {
		fmt.Fprintf(w, "\n%s with %d rows in visitors:\n%s\n", plan.Statement, plan.Preload, plan.Text)
	}
	fmt.Fprintf(w, "\n%s; %d visits a round, %d at once, every visitor new, %d pages, one site\n\n", r.Machine, r.Visits, r.Clients, pages)
	var order []int
	groups := map[int][]RecorderSample{}
	for _, s := range r.Samples {
		if groups[s.Preload] == nil {
			order = append(order, s.Preload)
		}
		groups[s.Preload] = append(groups[s.Preload], s)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "rows before\tvisits/s\t(min..max)\tto the first\tbatch\tp50 ms\tp99 ms\ttable bytes\tindex bytes\t")
	var first float64
	for i, preload := range order {
		median := func(of func(RecorderSample) float64) spread {
			var values []float64
			for _, s := range groups[preload] {
				values = append(values, of(s))
			}
			return spreadOf(values)
		}
		rate := median(func(s RecorderSample) float64 { return s.PerSecond })
		if i == 0 {
			first = rate.Median
		}
		fmt.Fprintf(t, "%d\t%.0f\t(%.0f..%.0f)\t%.0f %%\t%.0f\t%.1f\t%.1f\t%.0f\t%.0f\t\n",
			preload, rate.Median, rate.Min, rate.Max, 100*ratio(rate.Median, first),
			median(func(s RecorderSample) float64 { return s.MeanBatch }).Median,
			median(func(s RecorderSample) float64 { return s.P50Ms }).Median,
			median(func(s RecorderSample) float64 { return s.P99Ms }).Median,
			median(func(s RecorderSample) float64 { return s.TableBytes }).Median,
			median(func(s RecorderSample) float64 { return s.IndexBytes }).Median)
	}
	_ = t.Flush() // w is a person's
	fmt.Fprintln(w, "\nBytes on disk are for each new (visitor, target, day); a visit of a new visitor makes two: page and site.")
}
