package report

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// CSVOf returns a slice of structs as CSV. The columns have the names used in JSON.
func CSVOf(structs any) string { return csv(table(structs)) }

// table converts a slice of structs to a table with the same fields as in JSON. A value that JSON omits is nil.
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

// csv writes a table as CSV, with the column names in the first line. Numbers and booleans are written unchanged.
// All other values (strings, addresses, times) may be attackers' input, so they are made safe for spreadsheets: an
// apostrophe is put before text that a spreadsheet would read as a formula. nil is written as an empty field.
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

// csvText writes a string as a field. It also quotes a string that contains a semicolon or a tab, because some
// spreadsheets split fields at these characters, and a new cell could start with a formula.
func csvText(s string) string {
	if beginsFormula(s) || strings.HasPrefix(s, "'") { // an original apostrophe is doubled, so that it is not mistaken for the added one
		s = "'" + s
	}
	if strings.IndexFunc(s, needsQuotes) < 0 {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// beginsFormula reports whether a spreadsheet may read s as a formula. Like some spreadsheets, it skips white space,
// and treats full-width characters like their ASCII equivalents.
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
