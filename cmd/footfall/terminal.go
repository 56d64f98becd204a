package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

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

// tableOn begins a table of aligned columns, in which tabs separate the cells.
func tableOn(out io.Writer, header string) *tabwriter.Writer {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, header)
	return table
}

// writeJSON writes a value as JSON that people can read.
func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
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
