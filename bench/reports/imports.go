package reports

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"footfall/bench"
	"footfall/bench/generate"
	"footfall/counter"
	"footfall/verify"
)

// ImportFigures are how a made-up log was imported into a fresh database: once alone, and once into
// another app beside visits to the same pages, which are of a later day than all that the log has.
type ImportFigures struct {
	Lines  int64      `json:"lines"`
	Counts int64      `json:"counts"` // of them, visits that count
	Read   ImportRun  `json:"read"`   // with --dry-run
	Alone  ImportRun  `json:"alone"`
	Beside ImportRun  `json:"beside"`
	Visits VisitWaits `json:"visits"` // beside it; none was refused
	Proof  float64    `json:"proofSeconds"`
}

// ImportRun is what one process took.
type ImportRun struct {
	Seconds     float64 `json:"seconds"`
	CPUSeconds  float64 `json:"cpuSeconds"`
	MemoryBytes int64   `json:"memoryBytes"` // the most that it held
}

// measureImports imports a log, beside nothing and beside visits, and proves all numbers.
func (r *asking) measureImports(ctx context.Context) (err error) {
	own := *r
	address, drop, err := r.server.Database(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	d, err := bench.Migrated(ctx, address)
	if err != nil {
		return err
	}
	defer d.Close()
	dir, err := os.MkdirTemp(r.Dir, "footfall-log-")
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	own.address, own.made.App = address, "alone"
	f := &ImportFigures{Counts: int64(r.Log)}
	file := filepath.Join(dir, "access.log")
	if f.Lines, err = writeLog(file, r.Log); err != nil {
		return err
	}
	for _, app := range []string{"alone", "beside"} {
		open := "open"
		settings := generate.KeepForever()
		settings.Access = &open
		if err := counter.NewAdmin(d, nil).AddApp(ctx, app, settings); err != nil {
			return err
		}
	}
	if err := own.importLog(ctx, f, file); err != nil {
		return err
	}
	proof, err := verify.Run(ctx, d, verify.Options{Jobs: 2, Limit: 1})
	if err != nil {
		return err
	}
	if f.Proof = proof.Seconds; proof.Violations > 0 {
		return fmt.Errorf("%w: %d violations after the imports: see footfall verify", bench.ErrUntrue, proof.Violations)
	}
	r.report.Imports = f
	return nil
}

// writeLog writes a log of so many visits, and returns how many lines it has.
func writeLog(name string, visits int) (lines int64, err error) {
	file, err := os.Create(name) //nolint:gosec // in a new folder
	if err != nil {
		return 0, fmt.Errorf("bench: %w", err)
	}
	set := generate.Set{Visits: visits, Visitors: max(1, visits/10), Pages: max(20, visits/400), Days: min(60, max(1, visits/1000))}
	if err := errors.Join(generate.WriteLog(file, set), rewind(file)); err != nil {
		return 0, errors.Join(err, file.Close())
	}
	for read := bufio.NewScanner(file); read.Scan(); {
		lines++
	}
	return lines, file.Close()
}

func rewind(file *os.File) error {
	_, err := file.Seek(0, io.SeekStart)
	return err
}

func (r *asking) importLog(ctx context.Context, f *ImportFigures, file string) (err error) {
	if f.Read, err = r.importInto(ctx, "alone", file, "--dry-run"); err != nil {
		return err
	}
	r.Progress(fmt.Sprintf("importing %s lines", bench.Grouped(float64(f.Lines))))
	if f.Alone, err = r.importInto(ctx, "alone", file); err != nil {
		return err
	}
	if err := r.requireHot(ctx, "alone", f.Counts); err != nil {
		return err
	}
	if r.world, err = r.newWorld(ctx); err != nil {
		return err
	}
	r.world.app = "beside"
	r.Progress("importing them beside visits")
	return r.serving(ctx, func(p *bench.Process) error {
		f.Visits, err = r.whileCounting(ctx, p, func() (err error) {
			f.Beside, err = r.importInto(ctx, "beside", file)
			return err
		})
		return err
	})
}

// importInto runs an import as a process of its own.
func (r *asking) importInto(ctx context.Context, app, file string, flags ...string) (ImportRun, error) {
	cmd := exec.CommandContext(ctx, r.Footfall, append([]string{"import", "--database-url", r.address, "--app", app, file}, flags...)...) //nolint:gosec // the caller names it
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	began := time.Now()
	err := cmd.Start()
	if err != nil {
		return ImportRun{}, fmt.Errorf("bench: %w", err)
	}
	var run ImportRun
	ended := make(chan error, 1) // the result of the process
	go func() { ended <- cmd.Wait() }()
	for err = errRunning; errors.Is(err, errRunning); {
		select {
		case err = <-ended:
		case <-time.After(lookAtMemory):
			run.MemoryBytes = max(run.MemoryBytes, bench.PeakMemory(cmd.Process.Pid))
		}
	}
	if err != nil {
		return run, fmt.Errorf("bench: import: %s\n%s", err.Error(), said.String()) // not %w: its exit code is not ours
	}
	run.Seconds = time.Since(began).Seconds()
	run.CPUSeconds = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return run, nil
}

// lookAtMemory is how often the memory of a process is looked at, which tells nothing any more when
// it has ended.
const lookAtMemory = 20 * time.Millisecond

var errRunning = errors.New("it still runs")

// requireHot fails unless an app has counted so many visits.
func (r *asking) requireHot(ctx context.Context, app string, want int64) error {
	return r.asOwner(ctx, func(q owners) error {
		hot, err := q.HotOfApp(ctx, app)
		if err == nil && hot != want {
			err = fmt.Errorf("%w: %d visits were imported, and %d counted", bench.ErrUntrue, want, hot)
		}
		return err
	})
}

func (f *ImportFigures) print(w io.Writer, rate int) {
	fmt.Fprintf(w, "\na log of %s lines, %s of which count, in a fresh database\n", bench.Grouped(float64(f.Lines)), bench.Grouped(float64(f.Counts)))
	fmt.Fprintf(w, "  read only: %s lines/s of a processor's time, %d MB of memory\n",
		bench.Grouped(bench.Ratio(float64(f.Lines), f.Read.CPUSeconds)), f.Read.MemoryBytes>>20)
	for _, run := range []struct {
		how string
		ImportRun
	}{{"alone", f.Alone}, {"beside visits", f.Beside}} {
		fmt.Fprintf(w, "  imported %s: %s visits/s in %.0f s, %.0f µs of a processor's time a visit beside PostgreSQL's, %d MB of memory\n", run.how,
			bench.Grouped(bench.Ratio(float64(f.Counts), run.Seconds)), run.Seconds, 1e6*bench.Ratio(run.CPUSeconds, float64(f.Counts)), run.MemoryBytes>>20)
	}
	fmt.Fprintf(w, "  meanwhile %s visits/s were counted over HTTP (asked for: %s), none refused: these took p50 %s ms, p99 %s ms, at most %s ms\n",
		bench.Grouped(f.Visits.PerSecond), bench.Grouped(float64(rate)), bench.Millis(f.Visits.P50Ms), bench.Millis(f.Visits.P99Ms), bench.Millis(f.Visits.MaxMs))
	fmt.Fprintf(w, "  all was proved in %.0f s\n", f.Proof)
}
