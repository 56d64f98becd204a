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

func (c *verifyCmd) check(g globals) faults {
	f := g.checkDatabase()
	inRange := c.Sample > 0 && c.Sample <= 100 // also false for NaN
	f.addIf(!inRange, "--sample: %v is not a percentage: write more than 0 and at most 100", c.Sample)
	f.addIf(c.Jobs < 1 || c.Jobs > 64, "--jobs: %d connections: write 1 to 64", c.Jobs)
	return f
}

func (c *verifyCmd) run(ctx context.Context, p *program, d *db.DB) error {
	if c.App != "" {
		if _, err := admin.NewAdmin(d, nil).App(ctx, c.App, ""); err != nil {
			return err
		}
	}
	show := func(format string, values ...any) { // prints a progress line that replaces the previous one, but only on a terminal
		if terminalWidth(p.stderr) > 0 {
			fmt.Fprintf(p.stderr, "\r\x1b[K"+format, values...)
		}
	}
	options := verify.Options{App: c.App, Sample: c.Sample, Seed: c.Seed, Jobs: c.Jobs}
	if !c.All {
		options.Limit = offendersShown
	}
	options.Progress = func(step verify.Step) {
		show("%3d %%  %.0f s", 100*step.Done/max(step.Whole, 1), step.Elapsed.Seconds())
	}
	options.Promised = func(u verify.PromiseResult) {
		show("")
		fmt.Fprintf(p.stderr, "%6.1f s  %s: %s, %s\n", u.Seconds, u.Name, draw.Count(u.Checked, u.Unit), draw.Count(u.Violations, "violation"))
	}
	proof, err := verify.Run(ctx, d, options)
	show("")
	if err != nil {
		return err
	}
	return c.printProof(p.stdout, proof)
}

// printProof prints the results of `footfall verify`. A promise is a rule about numbers that must agree. printProof returns
// an error if a promise is broken, or if there was nothing to check.
func (c *verifyCmd) printProof(out io.Writer, proof *verify.Proof) error {
	if c.JSON {
		if err := writeJSON(out, proof); err != nil {
			return err
		}
	} else {
		printProofTable(out, proof)
	}
	if proof.Violations > 0 {
		return fmt.Errorf("verify: %s: the listed promises do not hold", draw.Count(proof.Violations, "violation"))
	}
	if proof.Targets == 0 {
		return errNothingChecked
	}
	return nil
}

func printProofTable(out io.Writer, proof *verify.Proof) {
	_ = printRows(out, nil, "PROMISE\tRESTS ON\tCHECKED\tVIOLATIONS", proof.Promises, func(u verify.PromiseResult) []any {
		return []any{u.Says, u.RestsOn, draw.Count(u.Checked, u.Unit), u.Violations}
	})
	for _, u := range proof.Promises {
		if u.Violations == 0 {
			continue
		}
		fmt.Fprintf(out, "\n%s: %s\n", u.Name, u.Says)
		rows := make([][]any, len(u.Offenders))
		for i, o := range u.Offenders {
			rows[i] = []any{"  " + cmp.Or(o.App, "-"), visit.Shown(o.Target), dayText(o.Day), o.Problem}
		}
		_ = printTable(out, rows...)
		if more := u.Violations - int64(len(u.Offenders)); more > 0 {
			fmt.Fprintf(out, "  and %d more\n", more)
		}
	}
	fmt.Fprintf(out, "\n%s, %s (%d of them erased), %s, %s (%d rest only on daily numbers)",
		draw.Count(proof.Targets, "target"), draw.Count(proof.Visitors, "visitor"), proof.Erased, draw.Count(proof.Visits, "visit"),
		draw.Count(proof.Days, "day"), proof.OlderDays)
	if proof.Unknown > 0 {
		fmt.Fprintf(out, ", %s with an unknown number of new visitors", draw.Count(proof.Unknown, "day"))
	}
	if proof.Deleted > 0 {
		fmt.Fprintf(out, ", without apps that are being deleted (%d)", proof.Deleted)
	}
	fmt.Fprintf(out, ": %s, in %s\n", draw.Count(proof.Violations, "violation"),
		time.Duration(proof.Seconds*float64(time.Second)).Round(10*time.Millisecond))
}
