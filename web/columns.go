package web

import "slices"

// pageColumns returns the columns of the list of pages: the usual columns, or all columns. The name of a column is a link that
// sorts the list by the column, unless the list has only one order. On a single day, visits equal visitors, so one column shows
// both.
func (v view) pageColumns() (columns []column) {
	l := v.app.words()
	brought, some := v.value != "", len(v.where) > 0
	views, fresh := []string{"numbers.views", "means.views"}, "means.new-page"
	if v.ofEvents() {
		views, fresh = []string{"did.events", "means.events"}, "means.new-event"
	}
	oneDay := v.stretch().In.Days() == 1
	for _, c := range []struct {
		sort, label, means, class string
		usual, shown              bool
	}{
		{"", "numbers.visitors", "means.visitors", "n", true, !brought && !oneDay},
		{"pv", "numbers.visits", "means.visits", "n", true, brought || !oneDay},
		{"pv", "numbers.visitors", "means.visitors", "n", true, !brought && oneDay},
		{"hot", views[0], views[1], "n wide", true, !brought && !some},
		{byChange, "numbers.change", "means.change", "n change", false, !brought && !some && v.site != ""},
		{"uv", "numbers.new", fresh, "n wide", brought, true},
	} {
		if !c.shown || !c.usual && !v.moreColumns() {
			continue
		}
		made := column{Label: l.Say(c.label), Means: l.Say(c.means), Class: c.class, Sort: c.sort, Chosen: c.sort == v.pagesOrder()}
		if c.sort != "" && !v.pagesHaveOneOrder() {
			made.Link = v.copyWith(func(o *view) { o.sortedBy, o.skip = c.sort, 0 }).link() + "#pages"
		}
		columns = append(columns, made)
	}
	return columns
}

// pagesHaveOneOrder reports whether the list of pages can only be sorted by visits. This is the case under a filter, and if the
// list has only the pages to which a source or campaign brought visitors.
func (v view) pagesHaveOneOrder() bool { return v.value != "" || len(v.where) > 0 }

// pagesOrder returns the order of the list of pages, such as pv or change. It is one of orders.
func (v view) pagesOrder() string {
	if v.pagesHaveOneOrder() || v.find != "" && v.sortedBy == byChange {
		return orders[0]
	}
	return v.sortedBy
}

// tagColumns returns the columns with numbers in the list of a tag's values: only visits, or all columns.
func (v view) tagColumns() []column {
	columns := []column{{Label: v.say("numbers.visits"), Means: v.say("means.visits-of-tag"), Class: "n", Chosen: v.sortedBy != byChange}}
	if v.stretch().In.Days() == 1 {
		columns[0].Label = v.say("numbers.visitors")
	}
	if !v.moreColumns() {
		return columns
	}
	if len(v.where) == 0 && v.site != "" {
		by := v.copyWith(func(o *view) { o.sortedBy, o.skip = byChange, 0 }).link()
		columns = append(columns, column{Label: v.say("numbers.change"), Link: by, Chosen: v.sortedBy == byChange, Class: "n change",
			Sort: byChange})
	}
	return append(columns, column{Label: v.say("numbers.new"), Means: v.say("means.new"), Class: "n", Sort: "uv"})
}

// linkToColumns returns the link that shows all columns in all lists, or only the usual columns if all of them are shown already.
func (v view) linkToColumns(panel string) option {
	if v.moreColumns() {
		fewer := v.copyWith(func(o *view) { o.more, o.sortedBy = false, orders[0] })
		return option{Label: v.say("columns.fewer"), Link: fewer.link() + "#" + panel}
	}
	return option{Label: v.say("columns.more"), Link: v.copyWith(func(o *view) { o.more = true }).link() + "#" + panel}
}

// moreColumns reports whether lists show all of their columns. They do so on request, or if they are sorted by a column that is
// hidden otherwise.
func (v view) moreColumns() bool { return v.more || slices.Contains(orders[2:], v.sortedBy) }
