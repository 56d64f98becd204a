package web

// pageColumns are those of the numbers of pages: the first two, or all. By most of them pages can be
// ordered, unless they are of some visitors or what a source brought.
func (v view) pageColumns() (columns []column) {
	l := v.app.words()
	brought, some := v.value != "", len(v.where) > 0
	for _, c := range []struct {
		sort, label, means string
		usual, shown       bool
	}{
		{"", "visitors", "means.visitors", true, !brought}, {"hot", "views", "means.views", true, !brought && !some},
		{"pv", "visits", "means.visits", brought || some, true},
		{byChange, "change", "means.change", false, !brought && !some && v.site != ""}, {"uv", "new", "means.new-page", brought, true},
	} {
		if !c.shown || !c.usual && !v.moreColumns() {
			continue
		}
		made := column{Label: l.Say("numbers." + c.label), Means: l.Say(c.means), Class: "n", Sort: c.sort}
		made.Chosen = c.sort == v.by && !brought && !some
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
	columns := []column{{Label: v.say("numbers.visits"), Means: v.say("means.visits-of-tag"), Class: "n", Chosen: v.by != byChange}}
	if v.stretch().In.Days() == 1 {
		columns[0].Label = v.say("numbers.visitors")
	}
	if !v.moreColumns() {
		return columns
	}
	if len(v.where) == 0 && v.site != "" {
		by := v.with(func(o *view) { o.by, o.skip = byChange, 0 }).link()
		columns = append(columns, column{Label: v.say("numbers.change"), Link: by, Chosen: v.by == byChange, Class: "n change", Sort: byChange})
	}
	return append(columns, column{Label: v.say("numbers.new"), Means: v.say("means.new"), Class: "n", Sort: "uv"})
}

// columned leads from a list to all columns of all lists, or back to the usual ones.
func (v view) columned(panel string) option {
	if v.moreColumns() {
		return option{Label: v.say("columns.fewer"), Link: v.with(func(o *view) { o.more, o.by = false, orders[0] }).link() + "#" + panel}
	}
	return option{Label: v.say("columns.more"), Link: v.with(func(o *view) { o.more = true }).link() + "#" + panel}
}

// moreColumns reports whether lists have all of their columns, as one must by which they are ordered.
func (v view) moreColumns() bool { return v.more || v.by != orders[0] }
