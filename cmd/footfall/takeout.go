package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/docker/go-units"

	"footfall/admin"
	"footfall/report/draw"
)

type (
	appExportCmd struct {
		appArg
		File     string `arg:"" name:"file"`
		Visitors bool
	}
	appLoadCmd struct {
		File string `arg:"" name:"file"`
		As   string `placeholder:"NAME"`
	}
)

// maxInputBytes is the maximum size of an input that copyToTemporary copies to a temporary file. `footfall app load` needs
// such a copy of standard input, because a zip file has its directory at the end.
const maxInputBytes = 64 << 30

// run writes an app's data to a new file, or to standard output for "-". If the export fails, run removes the new file.
func (c *appExportCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	out, end := p.stdout, func(err error) error { return err }
	if c.File != standardOutput {
		file, err := os.OpenFile(c.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s: the file already exists: name another one", c.File)
		} else if err != nil {
			return err
		}
		out, end = file, func(err error) error {
			if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
				_ = os.Remove(c.File)
			}
			return err
		}
	} else if isTerminal(p.stdout) {
		return errors.New("a zip cannot be shown on a terminal: name a file, or redirect the output to one")
	}
	buffered := bufio.NewWriterSize(out, 1<<16)
	m, err := a.ExportApp(ctx, c.App, c.Visitors, buffered)
	if err := end(errors.Join(err, buffered.Flush())); err != nil {
		return err
	}
	fmt.Fprintf(p.stderr, "exported app %s: %s of %s\n", c.App, draw.Count(rowsOf(m), "row"), draw.Count(int64(len(m.Files)), "file"))
	if !c.Visitors {
		fmt.Fprintln(p.stderr, "It has no visitors: it is for other tools, and app load cannot load it. "+
			"Export with --visitors for that.")
	}
	return nil
}

func rowsOf(m *admin.Manifest) (rows int64) {
	for _, file := range m.Files {
		rows += file.Rows
	}
	return rows
}

func (c *appLoadCmd) run(ctx context.Context, p *program, a *admin.Admin) error {
	file, err := os.Open(c.File)
	if c.File == standardOutput {
		file, err = copyToTemporary(p.stdin)
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: it is not a regular file: send it to standard input, and write - for its name", c.File)
	}
	m, unable, err := a.LoadApp(ctx, file, info.Size(), c.As)
	if !isDone(err) {
		return err
	}
	fmt.Fprintf(p.stdout, "loaded app %s, as it was at %s: %s. Add its keys, links, webhooks and accounts again.\n", m.App,
		m.ExportedAt.Format("2006-01-02 15:04:05 MST"), draw.Count(rowsOf(m), "row"))
	if unable != nil {
		fmt.Fprintf(p.stdout, "Its numbers can be read here, but nothing is counted for it: %v. Until then, "+
			"its visits are answered with 503.\n", unable)
	}
	return err
}

// copyToTemporary copies an input to a temporary file. It unlinks the file at once, so that the system deletes the file
// when it is closed or the program is killed.
func copyToTemporary(from io.Reader) (*os.File, error) {
	file, err := os.CreateTemp("", "footfall-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name())
	n, err := io.Copy(file, io.LimitReader(from, maxInputBytes+1))
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err == nil && n > maxInputBytes {
		err = fmt.Errorf("standard input has more than %s: name a file", units.BytesSize(maxInputBytes))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
