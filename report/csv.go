package report

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// CSVOf writes a slice of structs as CSV. The columns are named as in JSON.
func CSVOf(structs any) string { return csv(table(structs)) }

// table makes a table of a slice of structs, with the fields that JSON has. A value that JSON
// leaves out is nil.
func table(structs any) (header []string, rows [][]any) {
	all := reflect.ValueOf(structs)
	rows = make([][]any, all.Len())
	for _, column := range reflect.VisibleFields(all.Type().Elem()) {
		name, options, _ := strings.Cut(column.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		header = append(header, name)
		for i := range rows {
			var value any
			if field := all.Index(i).FieldByIndex(column.Index); options != "omitzero" || !field.IsZero() {
				value = field.Interface()
			}
			rows[i] = append(rows[i], value)
		}
	}
	return header, rows
}

// csv writes a table as CSV, with the names of the columns in the first line. Numbers and
// truth values are written as they are. Anything else (strings, addresses, times) may have been
// typed by anybody, and is made safe for people who open the file in a spreadsheet: what a
// spreadsheet would take for a formula gets an apostrophe in front. nil is an empty field.
func csv(header []string, rows [][]any) string {
	var out strings.Builder
	out.WriteString(strings.Join(convert(header, csvText), ",") + "\n")
	for _, row := range rows {
		out.WriteString(strings.Join(convert(row, csvField), ",") + "\n")
	}
	return out.String()
}

func csvField(value any) string {
	if number, is := value.(*int64); is {
		if number == nil {
			return ""
		}
		value = *number
	}
	switch v := value.(type) {
	case nil:
		return ""
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float64, bool:
		return fmt.Sprint(v)
	case []string:
		return csvText(strings.Join(v, "; "))
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
