package report

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// Panel is the rows of a statement, and the statement with its values, as anybody may send it who
// reads the schema report.
type Panel[Row any] struct {
	Rows []Row
	SQL  string
}

var (
	nameLine  = regexp.MustCompile(`^-- name: .*\n`)
	parameter = regexp.MustCompile(`\$[0-9]+`)
)

// statementOf returns a generated query with its values in place of its parameters. The values are
// the one argument of its method, or the fields of it in order.
func statementOf(query string, argument any) string {
	var values []any
	if fields := reflect.ValueOf(argument); fields.Kind() == reflect.Struct {
		for i := range fields.NumField() {
			values = append(values, fields.Field(i).Interface())
		}
	} else {
		values = append(values, argument)
	}
	filled := parameter.ReplaceAllStringFunc(nameLine.ReplaceAllString(query, ""), func(p string) string {
		var n int
		_, _ = fmt.Sscanf(p, "$%d", &n) // which the expression has found
		return literal(values[n-1])
	})
	return strings.TrimSpace(filled) + ";"
}

// literal writes a value as SQL does.
func literal(value any) string {
	switch v := value.(type) {
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	case []string:
		return "ARRAY[" + strings.Join(convert(v, func(s string) string { return literal(s) }), ", ") + "]"
	}
	return fmt.Sprint(value) // a number
}
