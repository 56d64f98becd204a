package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/docker/go-units"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/intake"
	"footfall/pause"
	"footfall/report/draw"
	"footfall/visit"
)

type peopleLoadCmd struct {
	appArg
	File string `arg:"" name:"file"`
}

// loadTries is the maximum number of attempts to store the links of the same lines, while the database is unavailable.
const loadTries = 60

// run opens the file, or standard input for "-", before it opens a database.
func (c *peopleLoadCmd) run(ctx context.Context, p *program) error {
	from, size := p.stdin, int64(0)
	if c.File != standardOutput {
		file, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
		from = file
	}
	return p.withAdmin(ctx, func(a *admin.Admin) error { return c.load(ctx, p, a, from, size) })
}

func (c *peopleLoadCmd) load(ctx context.Context, p *program, a *admin.Admin, from io.Reader, size int64) error {
	put, err := a.PutPeople(ctx, c.App)
	if err != nil {
		return err
	}
	wrong, terminal, begun := int64(0), isTerminal(p.stderr), time.Now()
	l := intake.Loading{From: from, Wrong: func(line int64, why string) {
		if wrong++; terminal {
			fmt.Fprint(p.stderr, clearLine)
		}
		fmt.Fprintf(p.stdout, "line %d: %s\n", line, draw.Text(why))
	}}
	l.Put = func(ctx context.Context, links []app.Link, bad map[int]string) (faults []string, err error) {
		for try := 1; ; try++ {
			faults, err = put(ctx, links, bad)
			verr, is := errors.AsType[*visit.Error](err)
			if !is || verr.Kind != visit.Unavailable && verr.Kind != visit.Lost || try == loadTries || pause.For(ctx, time.Second) != nil {
				return faults, err
			}
		}
	}
	shown := showProgress(p, func(now time.Time) string { return loadingLine(&l, size, now.Sub(begun)) })
	err = l.Run(ctx)
	shown()
	switch {
	case ctx.Err() != nil:
		return errors.New("people load: interrupted: the same command loads the rest")
	case err != nil:
		return fmt.Errorf("people load: around line %d: %w", l.Lines.Load(), err)
	}
	fmt.Fprintf(p.stdout, "loaded %s\n", draw.Count(l.Items.Load(), "line"))
	if wrong > 0 {
		return fmt.Errorf("people load: %s could not be loaded: see above. All other lines were loaded", draw.Count(wrong, "line"))
	}
	return nil
}

func loadingLine(l *intake.Loading, size int64, took time.Duration) string {
	done, lines := l.Bytes.Load(), l.Lines.Load()
	line := fmt.Sprintf("%s, %s, %s/s", units.HumanSize(float64(done)), draw.Count(lines, "line"),
		draw.Number(int64(float64(lines)/took.Seconds())))
	if size > 0 && done > 0 {
		line += fmt.Sprintf(", %v left", time.Duration(float64(size-done)/float64(done)*float64(took)).Round(time.Second))
	}
	return line
}
