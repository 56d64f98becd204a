package web

import (
	"cmp"
	"context"
	"slices"

	"footfall/report"
	"footfall/visit"
	"footfall/visit/tag"
	"footfall/web/words"
)

const firstTags = 10 // maximum rows of a panel; a link leads to all rows

// titleOf returns the title of the panel that shows a tag. For an app's own tag, the title is the tag's name.
func (v view) titleOf(name string) string {
	if slices.Contains(tag.Names, name) && name != hourly {
		return v.say("tags." + name + "-title")
	}
	return sentenceCase(name)
}

// tagLabel returns the name of a tag or a condition, for use in a sentence or next to a value.
func (v view) tagLabel(name string) string {
	if slices.Contains(tag.Names, name) || slices.Contains(untaggedLabels, name) {
		return v.say("tags." + name)
	}
	return name
}

// untaggedLabels are names that have a translation but are not built-in tags. They are the names of conditions, and byDay.
var untaggedLabels = []string{byDay, "page", "event", "new", "returning"}

// readTags reads the names of the app's tags into app.tags. Each tag belongs to one of the two tag panels: from or with.
func (d *Dashboard) readTags(ctx context.Context, app *App) error {
	names, err := d.reader.TagNames(ctx, app.Name)
	app.tags = map[string][]string{}
	for _, t := range names {
		panel := "with" // the panel of all tags that are not in fromTags, including the app's own
		if slices.Contains(fromTags, t.Name) {
			panel = "from"
		}
		if t.Name != hourly {
			app.tags[panel] = append(app.tags[panel], t.Name)
		}
		app.noCountries = app.noCountries || t.Name == tag.Country && !t.HasValues
	}
	return err
}

// usualTag returns the default tag of a panel, or "" if the panel has no tags.
func (a App) usualTag(panel string) string {
	if tags := a.tags[panel]; len(tags) > 0 {
		return tags[0]
	}
	return ""
}

// tags returns the tags that a panel can show, the default first. For sites, these are all tags. For pages, they are only source
// and campaign. Under a shared link, pages have no tags: if a page has one visitor, a tag would reveal that visitor's source.
func (v view) tags(panel string) (tags []string) {
	if v.ofEvents() {
		return nil
	}
	for _, tag := range v.app.tags[panel] {
		if v.path == "" || v.leadsToPages(tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}

// chosenTag returns the tag that a panel shows: the chosen tag, or else the default. It returns "" if the panel has no tags.
func (v view) chosenTag(panel string) string {
	tags, chosen := v.tags(panel), map[string]string{"from": v.fromBy, "with": v.withBy}[panel]
	switch {
	case slices.Contains(tags, chosen):
		return chosen
	case len(tags) > 0:
		return tags[0]
	}
	return ""
}

// panelTags returns the tags that the panels from and with show.
func (v view) panelTags() (names []string) {
	for _, panel := range []string{"from", "with"} {
		if name := v.chosenTag(panel); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// tagPanels reads the tag panels. If the page shows all rows of one panel, it reads only this panel.
func (d *Dashboard) tagPanels(ctx context.Context, v view) (panels []*list, err error) {
	if v.onlySums() {
		return nil, nil
	}
	for _, panel := range []string{"from", "with"} {
		if len(v.tags(panel)) == 0 || v.fullPanel != "" && v.fullPanel != panel {
			continue
		}
		made := &list{ID: panel, Kind: "bars tags"}
		if err := d.tagPanel(ctx, v, made); err != nil {
			return nil, err
		}
		panels = append(panels, made)
	}
	return panels, nil
}

func (d *Dashboard) tagPanel(ctx context.Context, v view, p *list) error {
	chosen, look := v.chosenTag(p.ID), v.look()
	p.Title = v.titleOf(chosen)
	first := v.copyWith(func(o *view) { o.skip = 0 })
	for _, tag := range v.tags(p.ID) {
		link := first.copyWith(func(o *view) { *map[string]*string{"from": &o.fromBy, "with": &o.withBy}[p.ID], o.value = tag, "" }).link()
		if tag != chosen {
			p.By = append(p.By, option{v.titleOf(tag), link + "#" + p.ID, false, ""})
		}
	}
	look.Name, look.N = chosen, report.DeepestTop
	read, err := d.reader.Tags(ctx, look)
	if err != nil {
		return err
	}
	p.From = v.source(p.ID, read.SQL)
	l := v.app.words()
	if chosen == tag.Country && v.app.noCountries && v.app.Shared == nil {
		p.Reason = l.HTML("tags.missing")
	}
	if len(read.Rows) == 0 {
		p.Reason = cmp.Or(p.Reason, any(v.say("parts.nobody")))
		return nil
	}
	values, none := read.Rows[:len(read.Rows)-1], read.Rows[len(read.Rows)-1]
	v.noteTags(p, chosen, none.Since, len(values) > 0)
	most := none.Pv
	if len(values) > 0 {
		most = max(most, values[0].Pv)
	}
	compared := look.Before > 0 && none.Since > 0 && none.Since <= look.Compared.Earlier(look.Before).From
	if v.sortedBy == byChange {
		slices.SortStableFunc(values, func(a, b report.TagValue) int {
			return cmp.Compare(growth(b.PvCompared, b.PvBefore, compared), growth(a.PvCompared, a.PvBefore, compared))
		})
	}
	rows := v.withNone(chosen, values, none)
	if all := len(rows); v.fullPanel != "" {
		p.Part = v.part(all)
		rows = rows[min(v.skip, all):min(v.skip+listedRows, all)]
	} else if all > firstTags {
		rows = v.withNone(chosen, values[:firstTags-(all-len(values))], none)
		label := v.say("parts.all", "count", all)
		if len(values) == report.DeepestTop {
			label = v.say("parts.all-or-more", "count", report.DeepestTop)
		}
		if v.site != "" {
			link := v.copyWith(func(o *view) { o.fullPanel, o.find, o.value = p.ID, "", "" }).link()
			p.Links = []option{{Label: label, Link: link}}
		}
	}
	p.Columns = append([]column{{Label: sentenceCase(v.tagLabel(chosen))}}, v.tagColumns()...)
	p.Columned = v.linkToColumns(p.ID)
	for _, value := range rows {
		p.add(v, v.tagRow(chosen, value, most), map[string]any{"": value.Pv, "uv": value.Newcomers,
			byChange: changeOf(l, value.PvCompared, value.PvBefore, compared)})
	}
	if len(p.Rows) == 0 { // v.skip is after the last row
		p.Reason = cmp.Or(p.Reason, any(v.say("parts.nobody")))
	}
	return nil
}

// noteTags adds notes below a tag panel: since when the tag is recorded, and who made the country database.
func (v view) noteTags(p *list, chosen string, since int32, hasValues bool) {
	if since > v.look().In.From && len(v.where) == 0 {
		p.note(v.say("tags.since", "day", v.app.words().Dated(since)))
	}
	if chosen == tag.Country && hasValues && v.app.CountriesBy != nil {
		if maker := v.app.CountriesBy(); maker != "" {
			p.note(v.say("tags.countries-by", "maker", maker))
		}
	}
}

// withNone adds the row none, which counts visits without the tag, to the rows of the tag's values. If there are no such visits,
// it adds the row only if there are no values. The row comes last, except in the panel of sources if this is sorted by visits.
// There the row counts direct visits, and is sorted like a value. In the list of all sources, it comes last, too.
func (v view) withNone(name string, values []report.TagValue, none report.TagValue) []report.TagValue {
	if none.Pv == 0 && len(values) > 0 {
		return values
	}
	at := len(values)
	if fewer := slices.IndexFunc(values, func(t report.TagValue) bool { return t.Pv < none.Pv }); fewer >= 0 &&
		name == tag.Source && v.sortedBy != byChange && v.fullPanel == "" {
		at = fewer
	}
	return slices.Insert(slices.Clone(values), at, none)
}

func (v view) tagRow(name string, value report.TagValue, most int64) row {
	r := row{Name: tagName(v.app.words(), name, value.Value), Bar: bar("rank", value.Pv, most), condition: conditionOf(name, value.Value)}
	if r.Name != value.Value {
		r.Value = value.Value
	}
	if v.site != "" && (v.app.Shared == nil || v.sharesCondition(r.condition)) {
		r.Link = v.toggleCondition(r.condition).link()
	}
	if value.Value == report.WithoutTag && name != tag.Source {
		r.Class = "none"
		return r
	}
	return r.choose(slices.Contains(v.where, r.condition))
}

// leadsToPages reports whether the reader may see to which pages the values of a tag brought visitors. Only source and campaign
// are recorded for pages. A reader with a shared link may not see them there.
func (v view) leadsToPages(name string) bool {
	return v.app.Shared == nil && tag.IsOfPages(name)
}

// readTagPages reads the pages of a site to which a source or campaign brought visitors. Pages that are counted only as part of a
// sum, such as (other), are not listed.
func (d *Dashboard) readTagPages(ctx context.Context, v view) (pages report.Panel[report.Page], err error) {
	_, look := v.panelReport("tag-pages")
	read, err := d.reader.TagPages(ctx, look)
	pages.SQL = read.SQL
	for _, p := range read.Rows {
		pages.Rows = append(pages.Rows, report.Page{PageBetween: report.PageBetween{URI: p.Uri, PV: p.Pv, NewVisitors: p.Newcomers},
			Title: p.Title})
	}
	return pages, err
}

var devices = []string{"desktop", "phone", "tablet"}

// tagName returns a tag's value in readable form.
func tagName(l *words.Language, name, value string) string {
	switch {
	case value == report.WithoutTag && name == tag.Source:
		return l.Say("tags.direct")
	case value == report.WithoutTag:
		return l.Say("tags.unknown")
	}
	switch name {
	case tag.Source:
		return visit.Shown(value)
	case tag.Country:
		return cmp.Or(l.Country(value), value)
	case tag.Language:
		return cmp.Or(l.LanguageName(value), value)
	case tag.Device:
		if slices.Contains(devices, value) { // callers may send other values, which have no translation
			return l.Say("tags." + value)
		}
	}
	return value
}
