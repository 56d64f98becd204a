package web

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"footfall/report"
	"footfall/visit"
	"footfall/visit/tag"
)

// A view may be filtered by conditions on visitors (view.where). migrations/report/filters.sql defines their meaning.

// chip shows a condition and links to the view without it.
type chip struct {
	Not           bool
	Name, Value   string
	Link, Negated string // without it, and with its opposite
}

var (
	// These characters have a meaning in conditions, so they are escaped in values.
	special = strings.NewReplacer("|", "%7C", "*", "%2A", "!", "%21")
	escaped = regexp.MustCompile(`(?i)%(7C|2A|21|25)`)
	plain   = strings.NewReplacer("%7C", "|", "%7c", "|", "%2A", "*", "%2a", "*", "%21", "!")
	percent = regexp.MustCompile(`(?i)%25(7C|2A|21|25)`)
)

// conditionOf returns the condition that a tag has a value.
func conditionOf(name, value string) string {
	if slices.Contains([]string{"page", "event", "new", "returning"}, name) {
		name = "tag." + name
	}
	return name + ":" + writtenValue(value)
}

func pageCondition(path string) string { return "page:" + writtenValue(path) }

func writtenValue(value string) string {
	return special.Replace(escaped.ReplaceAllString(value, "%25$1"))
}

// shownValue reverts writtenValue.
func shownValue(written string) string {
	const mark = "\x01"
	return strings.ReplaceAll(plain.Replace(percent.ReplaceAllString(written, mark+"$1")), mark, "%")
}

// readWhere reads the conditions from the query, without duplicates. If the view is about a single page, the conditions apply
// to the visitors who saw that page.
func (v *view) readWhere(given []string) error {
	for _, c := range given {
		if c = visit.StoredCondition(strings.TrimSpace(c)); c != "" && !slices.Contains(v.where, c) {
			v.where = append(v.where, c)
		}
		if !mayBeCondition(c) {
			return visit.Errorf(visit.Invalid, "where", "it is not a condition: write one like country:de")
		}
	}
	if v.site == "" || v.who || len(v.where) == 0 {
		v.where = nil
		return nil
	}
	if v.path != "" {
		v.where, v.path = append(v.where, pageCondition(v.path)), ""
	}
	for _, c := range v.where {
		if v.app.Shared != nil && !v.sharesCondition(c) {
			return visit.Errorf(visit.Forbidden, "where", "through a link, only conditions on pages and built-in tags are possible")
		}
	}
	v.find, v.value, v.by, v.chart = "", "", orders[0], charts[0]
	return nil
}

// mayBeCondition reports whether a text is safe to pass to the database, which then checks its syntax.
func mayBeCondition(c string) bool {
	return len(c) <= mostPath && utf8.ValidString(c) && !strings.ContainsRune(c, 0)
}

// sharesCondition reports whether a reader with a shared link may use a condition. An app's own tags may identify persons, and
// events belong to the app, not to the site.
func (v view) sharesCondition(c string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(c, "!"), ":")
	return slices.Contains([]string{"page", "new", "returning"}, name) || slices.Contains(tag.Names, name)
}

// toggled returns the view with a condition, or without it if it already has that condition.
func (v view) toggled(c string) view {
	return v.of(v.site, "").with(func(o *view) {
		o.where = slices.DeleteFunc(slices.Clone(v.where), func(other string) bool { return other == c })
		if len(o.where) == len(v.where) {
			o.where = append(o.where, c)
		}
		if v.path != "" {
			o.where = slices.Insert(o.where, 0, pageCondition(v.path))
		}
		o.by, o.chart, o.goal, o.funnel, o.steps, o.onePage = orders[0], charts[0], v.goal, v.funnel, v.steps, v.onePage
	})
}

// chips returns a chip for each condition.
func (v view) chips() (chips []chip) {
	for _, c := range v.where {
		rest, not := strings.CutPrefix(c, "!")
		made := chip{Not: not, Link: v.toggled(c).link()}
		if made.Name, made.Value = v.conditionNames(rest); not {
			made.Name = v.say("where.not", "name", made.Name)
		}
		opposite := "!" + c
		if not {
			opposite = rest
		}
		made.Negated = v.with(func(o *view) {
			o.where = slices.Clone(v.where)
			o.where[slices.Index(o.where, c)] = opposite
		}).link()
		chips = append(chips, made)
	}
	return chips
}

// conditionNames returns the names of a condition's tag and values in readable form.
func (v view) conditionNames(c string) (name, value string) {
	name, written, _ := strings.Cut(c, ":")
	var values []string
	for _, value := range strings.Split(written, "|") {
		if name == "page" || name == "event" {
			values = append(values, shownPart(shownValue(value)))
		} else if value != "" {
			values = append(values, tagName(v.app.words(), name, shownValue(value)))
		}
	}
	return v.tagLabel(strings.TrimPrefix(name, "tag.")), strings.Join(values, v.say("where.or"))
}

// single reports whether the only condition is that a tag has one of some values. The daily numbers for such a condition are
// kept for ever.
func (v view) single() bool {
	if len(v.where) != 1 || v.in.Days() > mostDayBars {
		return false
	}
	name, values, is := strings.Cut(v.where[0], ":")
	ofTag := is && !strings.HasPrefix(name, "!") && name != "page" && name != "event"
	return ofTag && !slices.Contains(strings.Split(values, "|"), report.WithoutTag)
}

// readFiltered reads parts of the page in one statement. Days on which the tags of some visitors are not recorded leave the
// range, unless the filter is a single tag, whose daily sums are kept. If no parts are given, it only finds these days.
func (d *Dashboard) readFiltered(ctx context.Context, v *view, parts ...string) error {
	for len(v.where) > 0 && v.since > 0 && v.stretch().In != none {
		look := v.filterLook()
		if len(parts) == 0 {
			look.Where = nil
		}
		read, err := d.reader.Filter(ctx, look, append(parts, "since")...)
		if err != nil {
			return err
		}
		v.erased = read.Erased
		if read.Since == 0 {
			if len(parts) > 0 {
				v.filtered = read
			}
			return nil
		}
		if v.known = read.Since; v.single() {
			v.period = periods[0]
			if look.Period = v.period; len(parts) > 0 {
				v.filtered, err = d.reader.Filter(ctx, look, "numbers", "days")
			}
			return err
		}
		v.since = read.Since
	}
	return nil
}

// partsOf returns the report parts that a page needs, or a list of all rows of a panel.
func (v view) partsOf() []string {
	switch v.all {
	case "":
		return []string{"numbers", "days", "tags", "pages", "events"}
	case "pages":
		return []string{"numbers", "pages"}
	}
	return []string{"numbers", "tags"}
}

// filterLook returns the report parameters for all parts of a filtered page.
func (v view) filterLook() report.Look {
	look := v.chartLook()
	look.Before, look.N, look.Names, look.Filtered = 0, report.DeepestTop, v.panelTags(), nil
	if v.byHour() {
		look.Period, look.Names = periods[0], append(look.Names, hourly)
	}
	return look
}

// keepMore returns since when filters are available, and how to keep data for longer.
func (v view) keepMore() string {
	if v.known == 0 {
		return ""
	}
	return v.say("where.known-since", "day", v.app.words().LongDay(v.known))
}

// onlySums reports whether only the daily sums of a single tag are available in the range.
func (v view) onlySums() bool { return v.known > 0 && v.single() }

// brings returns a link to the pages to which the view's single source or campaign brought visitors; "": none.
func (v view) brings() string {
	if len(v.where) != 1 {
		return ""
	}
	name, written, _ := strings.Cut(v.where[0], ":")
	if !v.leadsToPages(name) || strings.Contains(written, "|") || shownValue(written) == report.WithoutTag {
		return ""
	}
	return v.of(v.site, "").with(func(o *view) { o.fromBy, o.value = name, shownValue(written) }).link() + "#pages"
}

// suggestions returns conditions with values from the page's panels.
func suggestions(panels []*list) (some []string) {
	for _, p := range panels {
		for _, r := range p.Rows {
			some = append(some, r.condition)
		}
	}
	return append(some, "new", "returning")
}
