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

// A view may be filtered by conditions on visitors (view.where). migrations/report/filters.sql defines what conditions mean.

// chip shows a condition of the filter, with links to change the filter.
type chip struct {
	Not           bool
	Name, Value   string
	Link, Negated string // Link removes the condition; Negated replaces it with the opposite
}

var (
	// valueEscaper escapes the characters that have a meaning in conditions. If a value already contains such an escape, escaped
	// matches it, so that writtenValue can escape its percent sign. plain and percent revert these two steps.
	valueEscaper = strings.NewReplacer("|", "%7C", "*", "%2A", "!", "%21")
	escaped      = regexp.MustCompile(`(?i)%(7C|2A|21|25)`)
	plain        = strings.NewReplacer("%7C", "|", "%7c", "|", "%2A", "*", "%2a", "*", "%21", "!")
	percent      = regexp.MustCompile(`(?i)%25(7C|2A|21|25)`)
)

// conditionOf returns the condition that selects visitors with a value of a tag. A few names, such as page, have another meaning
// in conditions, so tags with these names get the prefix "tag.".
func conditionOf(name, value string) string {
	if slices.Contains([]string{"page", "event", "new", "returning"}, name) {
		name = "tag." + name
	}
	return name + ":" + writtenValue(value)
}

func pageCondition(path string) string { return "page:" + writtenValue(path) }

func writtenValue(value string) string {
	return valueEscaper.Replace(escaped.ReplaceAllString(value, "%25$1"))
}

// shownValue reverts writtenValue.
func shownValue(written string) string {
	const mark = "\x01"
	return strings.ReplaceAll(plain.Replace(percent.ReplaceAllString(written, mark+"$1")), mark, "%")
}

// readWhere reads the conditions from the query into v.where, without duplicates. If the view is about a single page, the page
// becomes one more condition, and the view becomes a view of the site.
func (v *view) readWhere(given []string) error {
	for _, c := range given {
		if c = visit.StoredCondition(strings.TrimSpace(c)); c != "" && !slices.Contains(v.where, c) {
			v.where = append(v.where, c)
		}
		if !mayBeCondition(c) {
			return visit.Errorf(visit.Invalid, "where", "it is not a condition: write one like country:de")
		}
	}
	if v.site == "" || v.showsVisitors || len(v.where) == 0 {
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
	v.find, v.value, v.sortedBy, v.chart = "", "", orders[0], charts[0]
	return nil
}

// mayBeCondition reports whether a text is safe to pass to the database. The database then checks the text's syntax.
func mayBeCondition(c string) bool {
	return len(c) <= mostPath && utf8.ValidString(c) && !strings.ContainsRune(c, 0)
}

// sharesCondition reports whether a reader with a shared link may use a condition. Conditions on the app's own tags are not
// allowed, because these tags may identify persons. Conditions on events are not allowed, because events belong to the app, not
// to the site.
func (v view) sharesCondition(c string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(c, "!"), ":")
	return slices.Contains([]string{"page", "new", "returning"}, name) || slices.Contains(tag.Names, name)
}

// toggleCondition returns the view with the condition c added, or removed if the view already has it. If the view is about a
// single page, this page becomes a condition, too.
func (v view) toggleCondition(c string) view {
	return v.withTarget(v.site, "").copyWith(func(o *view) {
		o.where = slices.DeleteFunc(slices.Clone(v.where), func(other string) bool { return other == c })
		if len(o.where) == len(v.where) {
			o.where = append(o.where, c)
		}
		if v.path != "" {
			o.where = slices.Insert(o.where, 0, pageCondition(v.path))
		}
		o.sortedBy, o.chart, o.goal, o.funnel, o.steps, o.onePage = orders[0], charts[0], v.goal, v.funnel, v.steps, v.onePage
	})
}

func (v view) chips() (chips []chip) {
	for _, c := range v.where {
		rest, not := strings.CutPrefix(c, "!")
		made := chip{Not: not, Link: v.toggleCondition(c).link()}
		if made.Name, made.Value = v.conditionNames(rest); not {
			made.Name = v.say("where.not", "name", made.Name)
		}
		opposite := "!" + c
		if not {
			opposite = rest
		}
		made.Negated = v.copyWith(func(o *view) {
			o.where = slices.Clone(v.where)
			o.where[slices.Index(o.where, c)] = opposite
		}).link()
		chips = append(chips, made)
	}
	return chips
}

// conditionNames returns the name of a condition's tag, and its values, in readable form.
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

// filtersBySingleTag reports whether the filter's only condition is that a tag has one of certain values. Such a filter does not
// need the rows of visits, because daily sums for each value of a tag are kept for ever. The result is false for ranges that are
// too long for a chart by day.
func (v view) filtersBySingleTag() bool {
	if len(v.where) != 1 || v.days.Days() > mostDayBars {
		return false
	}
	name, values, is := strings.Cut(v.where[0], ":")
	ofTag := is && !strings.HasPrefix(name, "!") && name != "page" && name != "event"
	return ofTag && !slices.Contains(strings.Split(values, "|"), report.WithoutTag)
}

// readFiltered reads the parts of a filtered page into v.filtered, in one statement. On the range's first days, the tags of some
// visitors may not be recorded. Then readFiltered moves v.since to the first day with all tags, and reads again. But if
// v.filtersBySingleTag is true, it reads daily sums for the whole range instead. Without parts, it reads no numbers, and only
// sets fields of v such as v.since, v.taggedSince and v.erased.
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
		if v.taggedSince = read.Since; v.filtersBySingleTag() {
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

// partsOf returns the parts that the page needs from readFiltered. A page that lists all rows of one panel needs fewer parts.
func (v view) partsOf() []string {
	switch v.fullPanel {
	case "":
		return []string{"numbers", "days", "tags", "pages", "events"}
	case "pages":
		return []string{"numbers", "pages"}
	}
	return []string{"numbers", "tags"}
}

// filterLook returns the report parameters with which one call of Filter reads all parts of a filtered page.
func (v view) filterLook() report.Look {
	look := v.chartLook()
	look.Before, look.N, look.Names, look.Filtered = 0, report.DeepestTop, v.panelTags(), nil
	if v.byHour() {
		look.Period, look.Names = periods[0], append(look.Names, hourly)
	}
	return look
}

// keepMore returns a sentence that names the first day that can be filtered, and the setting that keeps data for longer. It
// returns "" if all days can be filtered.
func (v view) keepMore() string {
	if v.taggedSince == 0 {
		return ""
	}
	return v.say("where.known-since", "day", v.app.words().LongDay(v.taggedSince))
}

// onlySums reports whether the range has no filtered numbers except the daily sums of a single tag.
func (v view) onlySums() bool { return v.taggedSince > 0 && v.filtersBySingleTag() }

// linkToBroughtPages returns a link to the pages to which a source or campaign brought visitors. It returns "" if the filter is
// not exactly one source or campaign.
func (v view) linkToBroughtPages() string {
	if len(v.where) != 1 {
		return ""
	}
	name, written, _ := strings.Cut(v.where[0], ":")
	if !v.leadsToPages(name) || strings.Contains(written, "|") || shownValue(written) == report.WithoutTag {
		return ""
	}
	return v.withTarget(v.site, "").copyWith(func(o *view) { o.fromBy, o.value = name, shownValue(written) }).link() + "#pages"
}

// suggestions returns conditions to suggest to a reader who types a filter: one for each value in the page's panels, and "new"
// and "returning".
func suggestions(panels []*list) (some []string) {
	for _, p := range panels {
		for _, r := range p.Rows {
			some = append(some, r.condition)
		}
	}
	return append(some, "new", "returning")
}
