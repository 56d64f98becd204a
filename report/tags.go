package report

import (
	"context"
	"slices"
	"strings"

	"footfall/report/draw"
	"footfall/visit"
	"footfall/visit/tag"
)

// Tag is the number of visitors with a value of a tag. A visitor's value on a day is the value of the first visit of the day.
type Tag struct {
	Value     string `json:"value"`
	PV        int64  `json:"pv"`
	Newcomers int64  `json:"newcomers"` // new visitors with this value
}

// WithoutTag is the value of the last row of Tags. This row has the visitors without the tag.
const WithoutTag = "(none)"

// Tags reads the l.N most frequent values of a tag among the visitors of a page or site in a range. The last row has the
// visitors without the tag.
func (r *Reader) Tags(ctx context.Context, l Look) (Panel[TagValue], error) {
	if l.byRows() {
		return r.tagsWhere(ctx, l)
	}
	return panelOf(ctx, r, "tags", PanelTags, (*Queries).PanelTags, l)
}

// FirstMinute returns the time of a site's first visit on a day, in minutes since midnight, or -1 if it is unknown. Only the
// hour of a visit is stored, so the result is a full hour. If the site was created in that hour, the result is the minute of
// its creation.
func (r *Reader) FirstMinute(ctx context.Context, app, site string, day int32) (int32, error) {
	return runQuery(ctx, r, "the first minute", (*Queries).FirstMinute, Look{App: app, Target: site, Day: day})
}

// ByTag is like Tags, but first checks whether the app has the tag, because callers can choose any name.
func (r *Reader) ByTag(ctx context.Context, l Look) (none Panel[TagValue], err error) {
	listed, err := r.TagNames(ctx, l.App)
	names := convert(listed, func(t TagName) string { return t.Name })
	switch {
	case err != nil:
		return none, err
	case !slices.Contains(names, l.Name):
		return none, visit.Errorf(visit.Invalid, "name", "%.64q is not a tag of this app: use %s", l.Name, strings.Join(names, ", "))
	case !tag.IsOfPages(l.Name) && strings.Contains(l.Target, "/"):
		return none, visit.Errorf(visit.Invalid, "name", "pages only have %s: request %s for the site",
			strings.Join(tag.Names[:tag.OfPages], " and "), l.Name)
	}
	return r.Tags(ctx, l)
}

func (a *Rows) tagsText(s draw.Style, list []Tag) string {
	if len(list) == 0 {
		return escapedf("%s: nothing was counted for %s %s\n", a.Look.App, visit.Shown(a.Look.Target), a.Look.In)
	}
	values := draw.Table{
		Columns: []draw.Column{{Name: strings.ToUpper(a.Look.Name), MayBeCut: true}, {Name: "PV", Bar: true}, {Name: "NEW"}},
		Rows:    convert(list, func(t Tag) []any { return []any{t.Value, t.PV, t.Newcomers} }),
	}
	text := escapedf("%s: %s by %s, %s\n\n", a.Look.App, visit.Shown(a.Look.Target), a.Look.Name, a.Look.In) + values.Text(s)
	switch since := a.Of.(tagMembers).Since; {
	case len(a.Look.Where) > 0:
	case since == 0:
		text += "\nno visit has had tags yet\n"
	case a.Look.In.From < since:
		text += escapedf("\ntags are recorded from %s on: visitors of earlier days are listed as %s\n", visit.DayText(since), WithoutTag)
	}
	return text
}
