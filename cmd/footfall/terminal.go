package main

import (
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"footfall/report/draw"
)

// styleOf is how reports can be drawn on out, judging by the environment.
func styleOf(out io.Writer, ascii bool, environment func(string) string) draw.Style {
	locale := environment("LANG")
	for _, stronger := range []string{"LC_CTYPE", "LC_ALL"} {
		if value := environment(stronger); value != "" {
			locale = value
		}
	}
	locale = strings.ReplaceAll(strings.ToLower(locale), "-", "")
	return draw.Style{
		Width: terminalWidth(out),
		ASCII: ascii || !strings.Contains(locale, "utf8") || environment("NO_COLOR") != "",
	}
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
