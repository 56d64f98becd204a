package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"footfall/report/draw"
)

// styleOf is how reports can be drawn on out, judging by the environment.
func styleOf(out io.Writer, ascii bool, environment func(string) string) draw.Style {
	locale := cmp.Or(environment("LC_ALL"), environment("LC_CTYPE"), environment("LANG"))
	locale = strings.ReplaceAll(strings.ToLower(locale), "-", "")
	return draw.Style{
		Width: terminalWidth(out),
		ASCII: ascii || !strings.Contains(locale, "utf8") || environment("NO_COLOR") != "",
	}
}

// columns is a table of aligned columns, in which tabs separate the cells. Flush draws it.
type columns struct {
	bytes.Buffer
	out io.Writer
}

func tableOn(out io.Writer, header string) *columns {
	table := &columns{out: out}
	fmt.Fprintln(table, header)
	return table
}

func (c *columns) Flush() error {
	const gap = 2
	var widths []int
	var rows [][]string
	for row := range strings.Lines(c.String()) {
		cells := strings.Split(strings.TrimSuffix(row, "\n"), "\t")
		for i, cell := range cells {
			cells[i] = draw.Text(cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if i < len(cells)-1 { // nothing stands behind the last
				widths[i] = max(widths[i], draw.Columns(cells[i]))
			}
		}
		rows = append(rows, cells)
	}
	var text strings.Builder
	for _, cells := range rows {
		for i, cell := range cells {
			text.WriteString(cell)
			if i < len(cells)-1 {
				text.WriteString(strings.Repeat(" ", widths[i]-draw.Columns(cell)+gap))
			}
		}
		text.WriteString("\n")
	}
	_, err := io.WriteString(c.out, text.String())
	return err
}

// writeJSON writes a value as JSON that people can read.
func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// standardOutput is written where a file is named.
const standardOutput = "-"

// saveFile writes a file, if one is named, once all that belongs into it is there.
func (p *program) saveFile(file string, write func(io.Writer) error) error {
	if file == "" {
		return nil
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	if file == standardOutput {
		_, err := p.stdout.Write(text.Bytes())
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644) //nolint:gosec // figures, for everybody
}

// confirmed is the flag of commands that take something away for good.
type confirmed struct{ Yes bool }

// ask asks whether that is meant, which a person says by typing the answer. Where there is nobody
// to ask, only the flag says so.
func (c confirmed) ask(p *program, what, answer string) error {
	if c.Yes {
		return nil
	}
	if !isTerminal(p.stdin) {
		return errors.New("nothing was done: there is no terminal to ask at, and --yes, which does it without asking, was not given")
	}
	fmt.Fprintf(p.stderr, "%s That cannot be undone. Type %s to go on: ", what, answer)
	typed, err := bufio.NewReader(p.stdin).ReadString('\n')
	if err != nil {
		fmt.Fprintln(p.stderr)
	}
	if strings.TrimSpace(typed) != answer {
		return fmt.Errorf("nothing was done: that is not %s (--yes does it without asking)", answer)
	}
	return nil
}

func isTerminal(file any) bool {
	opened, is := file.(*os.File)
	if !is {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(opened.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// terminalWidth is 0 for what is not a terminal.
func terminalWidth(out io.Writer) int {
	file, is := out.(*os.File)
	if !is {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
