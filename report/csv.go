package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// WriteCSV writes a table as CSV, with the names of the columns in the first line. Numbers and
// truth values are written as they are. Anything else (strings, addresses, times) may have been
// typed by anybody, and is made safe for people who open the file in a spreadsheet: what a
// spreadsheet would take for a formula gets an apostrophe in front. nil is an empty field.
func WriteCSV(w io.Writer, header []string, rows [][]any) error {
	out := bufio.NewWriter(w)
	for i, name := range header {
		separate(out, i)
		fmt.Fprint(out, csvText(name))
	}
	fmt.Fprintln(out)
	for _, row := range rows {
		for i, value := range row {
			separate(out, i)
			fmt.Fprint(out, csvField(value))
		}
		fmt.Fprintln(out)
	}
	return out.Flush() // returns the first error of all that was written
}

func separate(out *bufio.Writer, i int) {
	if i > 0 {
		fmt.Fprint(out, ",")
	}
}

func csvField(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, bool:
		return fmt.Sprint(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		return csvText(v)
	case time.Time:
		return csvText(v.UTC().Format(time.RFC3339))
	}
	return csvText(fmt.Sprint(value))
}

// csvText writes a string as a field. It is quoted not for commas alone: some spreadsheets split
// fields at semicolons and tabs, and the rest would begin a cell of its own.
func csvText(s string) string {
	if beginsFormula(s) || strings.HasPrefix(s, "'") { // an apostrophe that was there, too, so that none is taken for ours
		s = "'" + s
	}
	if strings.IndexFunc(s, needsQuotes) < 0 {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// beginsFormula also recognizes full-width characters, which some spreadsheets read as the plain
// ones, and skips white space, as some spreadsheets do.
func beginsFormula(s string) bool {
	for _, first := range strings.TrimLeft(s, " \u00a0\u3000") {
		return strings.ContainsRune("=+-@\t\r\n＝＋－＠", first)
	}
	return false
}

func needsQuotes(r rune) bool {
	plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:%~'", r)
	return !plain
}
