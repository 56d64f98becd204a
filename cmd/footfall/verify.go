package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"footfall/admin"
	"footfall/db"
	"footfall/report/draw"
	"footfall/verify"
	"footfall/visit"
)

type verifyCmd struct {
	App    string  `placeholder:"NAME"`
	Sample float64 `default:"100" placeholder:"PERCENT"`
	Seed   int64   `default:"0"`
	All    bool
	JSON   bool `name:"json"`
	Jobs   int  `default:"2"`
}

const offendersShown = 20

func (c *verifyCmd) check(g globals) []error {
	faults := g.checkDatabase()
	if !(c.Sample > 0 && c.Sample <= 100) { // written so that NaN is refused, too
		faults = append(faults, fmt.Errorf("--sample: %v is not a percentage: write more than 0 and at most 100", c.Sample))
	}
	if c.Jobs < 1 || c.Jobs > 64 {
		faults = append(faults, fmt.Errorf("--jobs: %d connections: write 1 to 64", c.Jobs))
	}
	return faults
}

func (c *verifyCmd) run(ctx context.Context, p *program) error {
	return p.withTables(ctx, func(d *db.DB) error {
		if c.App != "" {
			if _, err := admin.New(d, nil).App(ctx, c.App, ""); err != nil {
				return err
			}
		}
		watched := terminalWidth(p.stderr) > 0
		options := verify.Options{App: c.App, Sample: c.Sample, Seed: c.Seed, Jobs: c.Jobs}
		if !c.All {
			options.Limit = offendersShown
		}
		options.Progress = func(step verify.Step) {
			if watched {
				fmt.Fprintf(p.stderr, "\r\x1b[K%3d %%  %.0f s", 100*step.Done/max(step.Whole, 1), step.Elapsed.Seconds())
			}
		}
		options.Promised = func(u verify.PromiseResult) {
			if watched {
				fmt.Fprint(p.stderr, "\r\x1b[K")
			}
			fmt.Fprintf(p.stderr, "%6.1f s  %s: %s, %s\n", u.Seconds, u.Name, draw.Count(u.Checked, u.Unit), draw.Count(u.Violations, "violation"))
		}
		proof, err := verify.Run(ctx, d, options)
		if watched {
			fmt.Fprint(p.stderr, "\r\x1b[K")
		}
		if err != nil {
			return err
		}
		return c.tell(p.stdout, proof)
	})
}

// tell prints the proof, and returns an error if a promise does not hold.
func (c *verifyCmd) tell(out io.Writer, proof *verify.Proof) error {
	if c.JSON {
		if err := writeJSON(out, proof); err != nil {
			return err
		}
	} else {
		tellTable(out, proof)
	}
	if proof.Violations > 0 {
		return fmt.Errorf("verify: %s: what is listed does not hold", draw.Count(proof.Violations, "violation"))
	}
	if proof.Targets == 0 {
		return errNothingChecked
	}
	return nil
}

func tellTable(out io.Writer, proof *verify.Proof) {
	table := tableOn(out, "PROMISE\tRESTS ON\tCHECKED\tVIOLATIONS")
	for _, u := range proof.Promises {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\n", u.Says, u.RestsOn, draw.Count(u.Checked, u.Unit), u.Violations)
	}
	_ = table.Flush()
	for _, u := range proof.Promises {
		if u.Violations == 0 {
			continue
		}
		table := tableOn(out, fmt.Sprintf("\n%s: %s", u.Name, u.Says))
		for _, o := range u.Offenders {
			fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", cmp.Or(o.App, "-"), visit.Shown(o.Target), dayText(o.Day), o.Problem)
		}
		_ = table.Flush()
		if more := u.Violations - int64(len(u.Offenders)); more > 0 {
			fmt.Fprintf(out, "  and %d more\n", more)
		}
	}
	fmt.Fprintf(out, "\n%s, %s (%d of them erased), %s, %s (%d rest on daily numbers alone)", draw.Count(proof.Targets, "target"),
		draw.Count(proof.Visitors, "visitor"), proof.Erased, draw.Count(proof.Visits, "visit"), draw.Count(proof.Days, "day"), proof.OlderDays)
	if proof.Unknown > 0 {
		fmt.Fprintf(out, ", %s with visitors of whom it is not known whether they were new", draw.Count(proof.Unknown, "day"))
	}
	if proof.Deleted > 0 {
		fmt.Fprintf(out, ", without apps that are being deleted (%d)", proof.Deleted)
	}
	fmt.Fprintf(out, ": %s, in %s\n", draw.Count(proof.Violations, "violation"), time.Duration(proof.Seconds*float64(time.Second)).Round(10*time.Millisecond))
}
