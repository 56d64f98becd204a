package web

import (
	"html/template"
	"strings"
)

// list is a table whose rows have a name and numbers (templates/list.html). A list with an ID is a section of the page with this
// HTML id, and its rows can be downloaded as files.
type list struct {
	ID, Class string
	Side      string // position on the page: left or right column, or full width
	Title     any    // a string or template.HTML
	By        []option
	Find      *search
	Kind      string   // CSS class of the table
	Columns   []column // the first column shows the names of the rows
	Rows      []row
	Reason    any // why there are no rows: a string or template.HTML; nil if there are rows
	Part      part
	Notes     []template.HTML // texts below the rows
	Help      string
	Links     []option // links below the rows, such as to a list of all rows
	From      source
	Columned  option   // link that shows more columns, or fewer columns again
	OnePage   *onePage // visitors who saw only one page; nil if this list does not show them
}

type column struct {
	Label, Means, Link string
	Chosen             bool
	Class              string
	Sort               string // key of the column's values in add; also the name of the order that Link selects
}

// Order returns the direction in which the rows are sorted by the column, or "" if they are sorted by another column.
func (c column) Order() string {
	switch {
	case !c.Chosen:
		return ""
	case c.Sort == "site":
		return "ascending"
	}
	return "descending"
}

type row struct {
	Class         string // "chosen" if the filter selects the row, "none" if the row counts visits without the tag, or ""
	Name, Link    string
	Stored, Value string // tooltips that show how the name is stored: Stored on the link, Value on the name
	Calls, Until  string // texts around the name: Calls next to it, Until below it
	Bar           template.HTML
	Cells         []cell

	condition string // filter condition that selects the row's visitors
}

type cell struct {
	Class  string
	Text   any
	Change *change // shown instead of Text; nil if there is no change to show
}

// Classes returns the CSS classes of the list's section.
func (l *list) Classes() string { return strings.TrimSpace(l.Class + " " + l.Side) }

// add adds the row r. values contains the row's numbers, changes, texts or HTML. The key of a value is the Sort of its column.
func (l *list) add(v view, r row, values map[string]any) {
	for _, c := range l.Columns[1:] {
		shown := cell{Class: c.Class, Text: values[c.Sort]}
		switch value := shown.Text.(type) {
		case int64:
			shown.Text = v.number(value)
		case change:
			shown.Change = &value
		}
		r.Cells = append(r.Cells, shown)
	}
	l.Rows = append(l.Rows, r)
}

// note adds a text below the rows.
func (l *list) note(text string) {
	l.Notes = append(l.Notes, template.HTML(template.HTMLEscapeString(text)))
} //nolint:gosec // escaped

// choose returns the row r. If chosen is true, the result is marked as selected by the filter.
func (r row) choose(chosen bool) row {
	if chosen {
		r.Class = "chosen"
	}
	return r
}

// Chosen reports whether the filter selects the row.
func (r row) Chosen() bool { return r.Class == "chosen" }

// columnsOf returns the columns of a list: the column of names, whose label is names, and the columns of numbers. labels contains
// two elements for each column of numbers: its Sort, and the key of its label.
func (v view) columnsOf(names string, labels ...string) []column {
	columns := []column{{Label: names}}
	for i := 0; i < len(labels); i += 2 {
		columns = append(columns, column{Sort: labels[i], Label: v.say(labels[i+1]), Class: "n"})
	}
	return columns
}
