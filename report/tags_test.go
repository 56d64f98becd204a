package report_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"footfall/report"
	"footfall/visit"
)

// newTagged returns a reading with a site, a page, and tags of two days, as written by batches, and a late visit on
// the 27th. It is now the first day of a visitor who was first counted on the 28th, with a source.
func newTagged(t *testing.T) *reading {
	t.Helper()
	r := newReading(t)
	r.Exec(t, `
		INSERT INTO pages (app_id, site_id, uri) VALUES (1, NULL, 'a.example'), (1, 1, 'a.example/x'), (1, 1, 'a.example/y');
		INSERT INTO days (page_id, site_id, day_id, hot, pv, new_visitors)
		VALUES (1, NULL, 20190627, 1, 1, 1), (1, NULL, 20190628, 9, 8, 1), (1, NULL, 20190629, 9, 8, 2), (2, 1, 20190629, 3, 3, 1);
		INSERT INTO tags (app_id, name, value)
		VALUES (1, 'source', 'wiki.example'), (1, 'source', 'google'), (1, 'browser', 'Firefox');
		INSERT INTO tag_days (page_id, day_id, tag_id, pv, newcomers)
		VALUES (1, 20190628, 1, 4, 2), (1, 20190629, 1, 2, 0), (1, 20190629, 2, 5, 2), (2, 20190629, 2, 3, 1), (1, 20190629, 3, 8, 2)`)
	return r
}

func TestTagsAndThoseWithoutAreAll(t *testing.T) {
	t.Parallel()
	r := newTagged(t)
	look := report.Look{App: "demo", Target: "a.example", In: visit.Range{From: 20190628, To: 20190629}}
	asked := func(name string, n int) []report.TagValue {
		t.Helper()
		tags, err := r.Tags(t.Context(), of(look, func(l *report.Look) { l.Name, l.N = name, n }))
		require.NoError(t, err)
		return tags.Rows
	}
	require.Equal(t, []report.TagValue{
		{Value: "wiki.example", Pv: 6, Newcomers: 2, PvCompared: 6, Since: 20190628},
		{Value: "google", Pv: 5, Newcomers: 2, PvCompared: 5, Since: 20190628},
		{Value: "(none)", Pv: 5, Newcomers: 0, PvCompared: 5, Since: 20190628},
	}, asked("source", 10))
	require.Equal(t, []report.TagValue{{Value: "(none)", Pv: 16, Newcomers: 3, PvCompared: 16, Since: 20190628}}, asked("campaign", 10))
	look = report.Look{App: "demo", Target: "a.example", In: visit.Range{From: 20190629, To: 20190629}, Before: 1,
		Compared: visit.Range{From: 20190629, To: 20190629}}
	require.Equal(t, []report.TagValue{
		{Value: "google", Pv: 5, Newcomers: 2, PvCompared: 5, Since: 20190628},
		{Value: "(none)", Pv: 1, Newcomers: 0, PvCompared: 1, PvBefore: 4, Since: 20190628},
	}, asked("source", 1))
	look.Target = "a.example/y"
	require.Empty(t, asked("source", 10), "nothing was counted")
	look.Target = "never.example"
	require.Empty(t, asked("source", 10))
}

func TestTagsAreThoseThatAreCountedOrWere(t *testing.T) {
	t.Parallel()
	r := newTagged(t)
	r.Exec(t, `UPDATE apps SET tags = '{campaign,source,hour,plan}'; INSERT INTO tags (app_id, name, value)
		VALUES (1, 'source', 'z.example'), (1, 'age', '30')`)
	names, err := r.TagNames(t.Context(), "demo")
	require.NoError(t, err)
	require.Equal(t, []report.TagName{{Name: "campaign"}, {Name: "source", HasValues: true}, {Name: "hour"}, {Name: "plan"},
		{Name: "age", HasValues: true}, {Name: "browser", HasValues: true}}, names)
	for _, name := range []string{"plan", "browser"} {
		tags, err := r.ByTag(t.Context(), report.Look{App: "demo", Target: "a.example", Name: name, In: visit.Range{From: 20190629, To: 20190629},
			N: 10})
		require.NoError(t, err)
		require.Len(t, tags.Rows, map[string]int{"plan": 1, "browser": 2}[name])
	}
	_, err = r.ByTag(t.Context(), report.Look{App: "demo", Target: "a.example", Name: "country", In: visit.Range{From: 20190629, To: 20190629},
		N: 10})
	require.EqualError(t, err, `name: "country" is not a tag of this app: use campaign, source, hour, plan, age, browser`)
	_, err = r.ByTag(t.Context(), report.Look{App: "demo", Target: "a.example/x", Name: "plan", In: visit.Range{From: 20190629, To: 20190629},
		N: 10})
	require.ErrorContains(t, err, "request plan for the site")
}

func TestTagsThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	r := newTagged(t)
	for call, problem := range map[string]string{
		`tags('demo', 'a.example', 'colour', 20190628, 20190629)`:          "app demo has no tag colour: report.tag_names('demo') lists its tags",
		`tags('demo', 'a.example', 'source', 20190628, 20190629, 0)`:       "between 1 and 10000",
		`tags('demo', 'a.example/x', 'browser', 20190628, 20190629)`:       "request browser for the site",
		`tag_pages('demo', 'source', 'google', 20190628, 20190629, 10001)`: "between 1 and 10000",
	} {
		_, err := r.Tables().Exec(t.Context(), `SELECT FROM report.`+call)
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused, call)
		require.Equal(t, "22023", refused.Code)
		require.Contains(t, refused.Message, problem)
	}
}
