package web

// pageColumns are those of the numbers of pages: the first two, or all. By most of them pages can be
// ordered, unless they are of some visitors or what a source brought.
func (v view) pageColumns() (columns []column) {
	brought, some := v.value != "", len(v.where) > 0
	for _, c := range []struct {
		sort, label, means string
		usual, shown       bool
	}{
		{"", "Visitors", means["Visitors"], true, !brought}, {"hot", "Page views", means["Page views"], true, !brought && !some},
		{"pv", "Visits", means["Visits"], brought || some, true},
		{byChange, "Change", "of visitors", false, !brought && !some && v.site != ""}, {"uv", "New", "new to this page", brought, true},
	} {
		if !c.shown || !c.usual && !v.moreColumns() {
			continue
		}
		made := column{Label: c.label, Means: c.means, Class: "n", sort: c.sort, Chosen: c.sort == v.by && !brought && !some}
		if c.sort == byChange {
			made.Class = "n change"
		} else if !c.usual {
			made.Class = "n wide"
		}
		if c.sort != "" && !brought && !some {
			made.Link = v.with(func(o *view) { o.by, o.skip = c.sort, 0 }).link() + "#pages"
		}
		columns = append(columns, made)
	}
	return columns
}

// tagColumns are those of the numbers of values: their visits, or all.
func (v view) tagColumns() []column {
	columns := []column{{Label: "Visits", Means: "each visitor of a day by the first visit of that day", Class: "n", Chosen: v.by != byChange}}
	if v.stretch().In.Days() == 1 {
		columns[0].Label = "Visitors"
	}
	if !v.moreColumns() {
		return columns
	}
	if len(v.where) == 0 && v.site != "" {
		by := v.with(func(o *view) { o.by, o.skip = byChange, 0 }).link()
		columns = append(columns, column{Label: "Change", Link: by, Chosen: v.by == byChange, Class: "n change", sort: byChange})
	}
	return append(columns, column{Label: "New", Means: means["New"], Class: "n", sort: "uv"})
}

// columned leads from a list to all columns of all lists, or back to the usual ones.
func (v view) columned(panel string) option {
	if v.moreColumns() {
		return option{Label: "Fewer columns", Link: v.with(func(o *view) { o.more, o.by = false, orders[0] }).link() + "#" + panel}
	}
	return option{Label: "More columns", Link: v.with(func(o *view) { o.more = true }).link() + "#" + panel}
}

// moreColumns reports whether lists have all of their columns, as one must by which they are ordered.
func (v view) moreColumns() bool { return v.more || v.by != orders[0] }
