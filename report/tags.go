package report

import (
	"context"
	"slices"
	"strings"

	"footfall/report/draw"
	"footfall/visit"
	"footfall/visit/tag"
)

// Tag is how many visitors came with a value of a tag, by the first visit of each of their days.
type Tag struct {
	Value     string `json:"value"`
	PV        int64  `json:"pv"`
	Newcomers int64  `json:"newcomers"` // who got their rank so
}

// Tags are the first values of a tag in a range, and in the last place WithoutTag.
type Tags struct {
	App         string `json:"app"`
	Target      string `json:"target"`
	Name        string `json:"name"`
	visit.Range        // of days
	Since       int32  `json:"since,omitempty"` // from this day on the site has tags
	Tags        []Tag  `json:"tags"`
}

// ByTag reads the first n values of a tag with which visitors of a target came in a range.
func (r *Reader) ByTag(ctx context.Context, app, target, name string, in visit.Range, n int) (Tags, error) {
	listed, err := r.TagNames(ctx, app)
	names := convert(listed, func(t TagName) string { return t.Name })
	switch {
	case err != nil:
		return Tags{}, err
	case !slices.Contains(names, name):
		return Tags{}, visit.Errorf(visit.Invalid, "name", "%.64q is no tag of this app: use %s", name, strings.Join(names, ", "))
	case !tag.IsOfPages(name) && strings.Contains(target, "/"):
		return Tags{}, visit.Errorf(visit.Invalid, "name", "pages have %s alone: ask for %s of the site", strings.Join(tag.Names[:tag.OfPages], " and "), name)
	}
	read, err := r.Tags(ctx, Look{App: app, Target: target, In: in}, name, n)
	a := Tags{App: app, Target: target, Name: name, Range: in}
	a.Tags = convert(read.Rows, func(v TagValue) Tag {
		a.Since = v.Since
		return Tag{v.Value, v.Pv, v.Newcomers}
	})
	return a, err
}

func (a Tags) rows() ([]string, [][]any) { return table(a.Tags) }

func (a Tags) text(s draw.Style) string {
	if len(a.Tags) == 0 {
		return say("%s: nothing was counted for %s %s\n", a.App, visit.Shown(a.Target), a.Range)
	}
	values := draw.Table{
		Columns: []draw.Column{{Name: strings.ToUpper(a.Name), Gives: true}, {Name: "PV", Bar: true}, {Name: "NEW"}},
		Rows:    convert(a.Tags, func(t Tag) []any { return []any{t.Value, t.PV, t.Newcomers} }),
	}
	text := say("%s: %s by %s, %s\n\n", a.App, visit.Shown(a.Target), a.Name, a.Range) + values.Text(s)
	switch {
	case a.Since == 0:
		text += "\nno visit has brought tags yet\n"
	case a.From < a.Since:
		text += say("\ntags are counted from %s on: days before it are %s\n", visit.DayText(a.Since), WithoutTag)
	}
	return text
}
