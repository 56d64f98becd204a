package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"

	"footfall/db"
	"footfall/report/draw"
	"footfall/status"
)

type statusCmd struct {
	JSON bool `name:"json"`
}

// errWarned is returned if `footfall status` has printed warnings.
var errWarned = errors.New("status: there are warnings")

func (c *statusCmd) run(ctx context.Context, p *program) error {
	return p.withDatabase(ctx, db.Options{}, func(d *db.DB) error {
		dir := ""
		if p.embedded() {
			dir = p.Data
		}
		s, err := status.Read(ctx, d, dir)
		if err != nil {
			return err
		}
		if c.JSON {
			err = writeJSON(p.stdout, s)
		} else {
			err = printStatus(p.stdout, s)
		}
		if err == nil && len(s.Warnings) > 0 {
			err = errWarned
		}
		return err
	})
}

// statusText returns a function that returns the output of `footfall status` for d. A page of the service shows this
// output.
func (p *program) statusText(d *db.DB) func(context.Context) (string, error) {
	dir := ""
	if p.embedded() {
		dir = p.Data
	}
	return func(ctx context.Context) (string, error) {
		s, err := status.Read(ctx, d, dir)
		if err != nil {
			return "", err
		}
		var text strings.Builder
		err = printStatus(&text, s)
		return text.String(), err
	}
}

// smallTable is a size in bytes. If an empty table is smaller, it is not listed.
const smallTable = 1 << 20

func printStatus(out io.Writer, s *status.Status) error {
	fmt.Fprintf(out, "PostgreSQL %s, database %s: %s", s.Server.Version, s.Server.Database, size(s.Server.Bytes))
	if s.Disk != nil {
		fmt.Fprintf(out, "; %s of the disk is free", size(s.Disk.Free))
	}
	fmt.Fprintf(out, "; huge pages: %s", s.Server.HugePages)
	if s.Server.Standby {
		fmt.Fprint(out, "; a synchronous standby is required")
	}
	fmt.Fprintln(out)
	fmt.Fprintf(out, "visit rows: a table for each of %d days, %s to %s\n", s.Visits.Days, dayText(s.Visits.FirstDay),
		dayText(s.Visits.LastDay))
	fmt.Fprintf(out, "daily task: done on %s, last day closed %s", dayText(s.Daily.DoneOn), dayText(s.Daily.ClosedDay))
	if s.Daily.ClosedAt != nil {
		fmt.Fprintf(out, " at %s", s.Daily.ClosedAt.UTC().Format(time.RFC3339))
	}
	if s.Daily.Running {
		fmt.Fprint(out, ", running now")
	}
	fmt.Fprintln(out)
	printInbox(out, &s.Inbox)

	fmt.Fprintln(out)
	err := printRows(out, nil, "INSTANCE\tFROM\tSINCE", s.Instances, func(i status.Instance) []any {
		since := "-"
		if i.Since != nil {
			since = i.Since.UTC().Format(time.RFC3339)
		}
		return []any{cmp.Or(i.Name, "-"), cmp.Or(i.Address, "-"), since}
	})
	if slices.ContainsFunc(s.Instances, func(i status.Instance) bool { return i.Since == nil }) {
		fmt.Fprintln(out, "(members of pg_read_all_stats see more about sessions of other roles)")
	}
	fmt.Fprintln(out)
	err = printRows(out, err, "APP\tVISITS\tLAST DAY\tVISITS THAT DAY\tVISIT ROWS ARE KEPT", s.Apps, func(a status.App) []any {
		return []any{a.Name, a.Hot, dayText(a.LastDay), a.LastDayHot, retentionText(a)}
	})
	worth := slices.DeleteFunc(slices.Clone(s.Tables), func(t status.Table) bool { return t.Rows <= 0 && t.Bytes < smallTable })
	if len(worth) > 0 {
		fmt.Fprintln(out)
		err = printRows(out, err, "TABLE\tROWS (ABOUT)\tSIZE", worth, func(t status.Table) []any {
			if t.Rows <= 0 { // the table is empty, or PostgreSQL has not estimated its number of rows yet
				return []any{t.Name, "-", size(t.Bytes)}
			}
			return []any{t.Name, t.Rows, size(t.Bytes)}
		})
	}
	for _, shared := range s.Shared {
		fmt.Fprintf(out, "\nNOTE: %s\n", draw.Text(shared))
	}
	for i, warning := range s.Warnings {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "WARNING: %s\n", draw.Text(warning))
	}
	return err
}

func printInbox(out io.Writer, i *status.Inbox) {
	if i.Waiting == 0 {
		return
	}
	fmt.Fprintf(out, "inbox: visits waiting to be counted: %d, the first since %s", i.Waiting, i.Oldest.UTC().Format(time.RFC3339))
	if i.Skipped > 0 {
		fmt.Fprintf(out, "; of apps that are locked for now: %d", i.Skipped)
	}
	fmt.Fprintln(out)
}

func size(bytes int64) string { return units.BytesSize(float64(bytes)) }

func dayText(day int32) string {
	if day == 0 {
		return "-"
	}
	return fmt.Sprint(day)
}

// retentionText returns a text with three facts: how long an app keeps the rows of its visits, the first day that still has
// rows, and whether an import has paused the deletion of rows.
func retentionText(a status.App) string {
	how := "for ever"
	if a.RetainDays > 0 {
		how = draw.Count(int64(a.RetainDays), "day")
	}
	if a.FromDay > 0 {
		how += fmt.Sprintf(", from %d on", a.FromDay)
	}
	if a.Paused {
		how += "; none is deleted while an import runs"
	}
	return how
}
