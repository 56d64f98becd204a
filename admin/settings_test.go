package admin_test

import (
	"fmt"
	"strings"
	"testing"
	_ "time/tzdata" // old names of zones, which a system may lack

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter/app"
	"footfall/db"
	"footfall/desk"
	"footfall/visit/tag"
)

func TestRetentionSettings(t *testing.T) {
	c := newCommands(t)
	for _, wrong := range []struct {
		retain, forget int
		says           string
	}{
		{-1, 0, "retain-days: -1 is out of range"},
		{36501, 0, "retain-days: 36501 is out of range"},
		{1, 36501, "forget-days: 36501 is out of range"},
		{10, 9, "forget-days: visits would be kept for longer than their visitors"},
		{0, 9, "forget-days: visits would be kept for longer than their visitors"},
	} {
		err := c.Admin.SetApp(t.Context(), "demo", app.Settings{RetainDays: &wrong.retain, ForgetDays: &wrong.forget})
		assert.ErrorContains(t, err, wrong.says)
	}
	require.EqualValues(t, 1, c.One(t, `SELECT count(*) FROM apps WHERE name = 'demo' AND (retain_days, forget_days) = (35, 0)`),
		"the defaults")
	for _, days := range []int{9, 0, 36500} {
		require.NoError(t, c.Admin.SetApp(t.Context(), "demo", app.Settings{RetainDays: &days, ForgetDays: &days}))
	}
}

func TestTagSettings(t *testing.T) {
	c := newCommands(t)
	many := []string{"default"}
	for i := range 21 {
		many = append(many, fmt.Sprintf("own%d", i))
	}
	for _, wrong := range []struct {
		tags []string
		says string
	}{
		{[]string{"Plan"}, `tags: "Plan" is not the name of a tag`},
		{[]string{""}, `tags: "" is not the name of a tag`},
		{[]string{"none", "source"}, "tags: none cannot be combined with other names"},
		{many, "tags: there are 21 tags of your own"},
	} {
		require.ErrorContains(t, c.Admin.SetApp(t.Context(), "demo", app.Settings{Tags: wrong.tags}), wrong.says)
	}
	tags := func() (names []string) {
		rows := desk.Column[[]string](t, c, `SELECT tags FROM footfall.apps WHERE name = 'demo'`)
		return rows[0]
	}
	require.Equal(t, tag.Names, tags())
	for _, set := range []struct{ typed, counted string }{
		{"none", "hour"}, {"plan,hour,plan,campaign,source", "source,campaign,hour,plan"}, {"plan,default", strings.Join(tag.Names, ",") +
			",plan"}, {"default", strings.Join(tag.Names, ",")},
	} {
		require.NoError(t, c.Admin.SetApp(t.Context(), "demo", app.Settings{Tags: strings.Split(set.typed, ",")}))
		require.Equal(t, set.counted, strings.Join(tags(), ","), set.typed)
	}
	require.NoError(t, c.Admin.SetApp(t.Context(), "demo", app.Settings{Tags: many[:21]}))
	require.NoError(t, c.Admin.SetApp(t.Context(), "demo", app.Settings{RespectDNT: new(bool)}))
	require.Len(t, tags(), 28, "settings that are not given stay")
}

// A growing list of hosts can be imported repeatedly, and does not affect other ignored visitors.
func TestIgnoreFile(t *testing.T) {
	c := newCommands(t)
	set := func(s app.Settings) error { return c.Admin.SetApp(t.Context(), "demo", s) }
	is := func(list string) {
		t.Helper()
		assert.EqualValues(t, 1, c.One(t, `SELECT count(*) FROM apps WHERE name = 'demo' AND ignore::text = '`+list+`'`), list)
	}
	require.NoError(t, set(app.Settings{Ignore: []string{"192.0.2.1", "id:me", "from:typed.example"}}))
	file := []byte("# of today\r\n\r\nWWW.Spam.example\n b.example # why\n\nspam.example\nспам.рф")
	require.NoError(t, set(app.Settings{IgnoreFile: file}))
	is("{192.0.2.1/32,id:me,from:b.example,from:spam.example,from:xn--80ayhh.xn--p1ai}")
	require.NoError(t, set(app.Settings{IgnoreFile: []byte("b.example")}))
	is("{192.0.2.1/32,id:me,from:b.example}")
	err := set(app.Settings{IgnoreFile: []byte("good.example\n\nhttp://bad.example\nlocalhost\n")})
	assert.ErrorContains(t, err, `ignore-file: line 3: "http://bad.example" is not a host`)
	assert.ErrorContains(t, err, `ignore-file: line 4: "localhost" is not a host`)
	err = set(app.Settings{IgnoreFile: []byte(strings.Repeat("no host\n", 1000))})
	assert.Equal(t, 10, strings.Count(err.Error(), "ignore-file: line "))
	is("{192.0.2.1/32,id:me,from:b.example}")
	require.NoError(t, set(app.Settings{Ignore: []string{"from:typed.example"}, IgnoreFile: file[:0]}))
	is("{from:typed.example}")
	var many strings.Builder
	for i := range 10_001 {
		fmt.Fprintf(&many, "h%d.example\n", i)
	}
	assert.ErrorContains(t, set(app.Settings{IgnoreFile: []byte(many.String())}),
		"ignore-file: it has 10001 hosts: at most 10000 are possible")
	require.NoError(t, set(app.Settings{IgnoreFile: []byte(strings.Replace(many.String(), "h0.example", "h1.example", 1))}))
	assert.EqualValues(t, 10_000, c.One(t, `SELECT cardinality(ignore) FROM apps WHERE name = 'demo'`))
	require.NoError(t, set(app.Settings{IgnoreFile: []byte{}}))
	is("{}")
}

// A zone with an old name from a browser is stored under its present name. An app with an old name keeps it.
func TestZonesOfBrowsers(t *testing.T) {
	c := newCommands(t)
	set := func(zone string) string {
		require.NoError(t, c.Admin.SetApp(t.Context(), "demo", app.Settings{TZ: &zone}))
		return desk.Column[string](t, c, `SELECT tz FROM footfall.apps WHERE name = 'demo'`)[0]
	}
	assert.Equal(t, "Asia/Kolkata", set("Asia/Calcutta"))
	assert.Equal(t, "America/Argentina/Buenos_Aires", set("America/Buenos_Aires"))
	row := db.App{Name: "demo", Tz: "Asia/Calcutta", Access: app.AccessOpen, Visitor: app.ByAddress, Ipv6Prefix: 64,
		PublicCounts: app.PublicRead}
	require.NoError(t, app.Settings{TZ: &row.Tz}.Apply(&row, nil))
	assert.Equal(t, "Asia/Calcutta", row.Tz)
}
