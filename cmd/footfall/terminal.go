package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"footfall/db"
	"footfall/report/draw"
)

// styleOf returns the style in which reports are printed to out: the terminal's width, and whether only ASCII characters
// are used. environment returns the value of an environment variable.
func styleOf(out io.Writer, ascii bool, environment func(string) string) draw.Style {
	locale := cmp.Or(environment("LC_ALL"), environment("LC_CTYPE"), environment("LANG"))
	locale = strings.ReplaceAll(strings.ToLower(locale), "-", "")
	return draw.Style{
		Width: terminalWidth(out),
		ASCII: ascii || !strings.Contains(locale, "utf8") || environment("NO_COLOR") != "",
	}
}

// printTable prints rows in aligned columns. The first row is the header. Numbers get no thousands separators.
func printTable(out io.Writer, rows ...[]any) error {
	if len(rows) == 0 {
		return nil
	}
	var table draw.Table
	for i, row := range rows {
		for j, cell := range row {
			row[j] = fmt.Sprint(cell) // convert numbers to text, because draw would add thousands separators
			if i == 0 {
				table.Columns = append(table.Columns, draw.Column{Name: draw.Text(row[j].(string))})
			}
		}
	}
	table.Rows = rows[1:]
	_, err := io.WriteString(out, table.Text(draw.Style{}))
	return err
}

// printRows prints a table: a header, and a row for each element of read. names contains the column names, separated by
// tabs. If err is set, printRows prints nothing and returns err.
func printRows[Row any](out io.Writer, err error, names string, read []Row, cells func(Row) []any) error {
	if err != nil {
		return err
	}
	rows := make([][]any, 1, len(read)+1)
	for name := range strings.SplitSeq(names, "\t") {
		rows[0] = append(rows[0], name)
	}
	for _, row := range read {
		rows = append(rows, cells(row))
	}
	return printTable(out, rows...)
}

// isDone reports whether a command that returned err has made its change. ErrInstancesBehind means that the change was
// made, but some instances do not use it yet.
func isDone(err error) bool { return err == nil || errors.Is(err, db.ErrInstancesBehind) }

// printChange prints the result of a command that changes something, and returns the command's error (err). If the change
// was not made (isDone), it prints nothing.
func (p *program) printChange(err error, says string, values ...any) error {
	if isDone(err) {
		fmt.Fprintf(p.stdout, says+"\n", values...)
	}
	return err
}

func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// standardOutput is the file name that means standard output, or for standard input if the command reads the file.
const standardOutput = "-"

// confirmed is the flag --yes of commands that delete data. With this flag, the user confirms the deletion.
type confirmed struct{ Yes bool }

// ask returns an error unless the user confirms, either with --yes or by typing answer. Without a terminal, the user can
// only confirm with --yes.
func (c confirmed) ask(p *program, what, answer string) error {
	if c.Yes {
		return nil
	}
	if !isTerminal(p.stdin) {
		return errors.New("nothing was done: without a terminal, it cannot be confirmed: give --yes to do it without asking")
	}
	fmt.Fprintf(p.stderr, "%s This cannot be undone. Type %s to continue: ", what, answer)
	typed, err := bufio.NewReader(p.stdin).ReadString('\n')
	if err != nil {
		fmt.Fprintln(p.stderr)
	}
	if strings.TrimSpace(typed) != answer {
		return fmt.Errorf("nothing was done: the answer was not %s (--yes does it without asking)", answer)
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

// terminalWidth returns the number of columns of a terminal, or 0 if out is not a terminal.
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
