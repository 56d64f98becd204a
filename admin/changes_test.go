package admin_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/visit"
)

// TestChangesAreNoted makes each change once, and reads the notes: they contain no refused change, no key, no token
// and no visitor.
func TestChangesAreNoted(t *testing.T) {
	c := newCommands(t)
	ctx := t.Context()
	a := admin.NewAdmin(c.DB, make(app.Secret, app.SecretBytes))
	begun, err := a.Changes(ctx, "", 100)
	require.NoError(t, err)

	longest := "account " + strings.Repeat("𠀀", 100)
	days, read := 60, "count"
	require.NoError(t, a.WithAuthor(longest).SetApp(ctx, "shop", app.Settings{RetainDays: &days, PublicCounts: &read,
		Ignore: []string{"192.0.2.7", "from:spam.example"}}))
	require.NoError(t, a.SetApp(ctx, "shop", app.Settings{RetainDays: &days}), "which is as it was")
	none := -1
	require.Error(t, a.SetApp(ctx, "shop", app.Settings{RetainDays: &none}))
	_, err = a.AddSites(ctx, "shop", []string{"Two.example"})
	require.NoError(t, err)
	key, err := a.AddKey(ctx, "shop", []app.Scope{app.ScopeRead})
	require.NoError(t, err)
	require.NoError(t, a.RevokeKey(ctx, "shop", key))
	token, until, err := a.AddShare(ctx, "shop", "", "")
	require.NoError(t, err)
	require.NoError(t, a.RevokeShare(ctx, "shop", "http://x/share/"+token))
	n, err := a.AddNote(ctx, "shop", "2026-11-22", "A new version", "")
	require.NoError(t, err)
	_, err = a.RemoveNote(ctx, "shop", n.ID)
	require.NoError(t, err)
	id, _, _, err := a.AddWebhook(ctx, "shop", "shop.example", "", "https://hook.example/T0KEN?key=T0KEN", false)
	require.NoError(t, err)
	_, err = a.RemoveWebhook(ctx, "shop", id)
	require.NoError(t, err)
	offset := []admin.Offset{{URI: "shop.example/a", Hot: 3, PV: 2, UV: 1}}
	for _, try := range []bool{true, false, false} { // the last one changes nothing
		_, err = a.SetOffsets(ctx, "shop", offset, try)
		require.NoError(t, err)
	}
	_, err = a.RemoveOffset(ctx, "shop", "shop.example/a")
	require.NoError(t, err)
	require.Error(t, a.DeletePage(ctx, "shop", "shop.example/nothing"))
	_, err = a.SetOffsets(ctx, "demo", []admin.Offset{{URI: "a.example/x", Hot: 1, PV: 1, UV: 1}}, false)
	require.NoError(t, err)
	require.NoError(t, a.DeletePage(ctx, "demo", "a.example/x"))
	_, err = a.EraseVisitor(ctx, "demo", "192.0.2.1")
	require.NoError(t, err)
	require.NoError(t, a.DeleteApp(ctx, "demo"))

	changes, err := a.Changes(ctx, "", 100)
	require.NoError(t, err)
	var said [][5]string
	for _, ch := range changes[:len(changes)-len(begun)] {
		said = append([][5]string{{ch.Who, *ch.App, ch.What, ch.Was, ch.IsNow}}, said...)
	}
	keyName, linkName := app.KeyName(key), token[:8]
	link := linkName + "_… (all sites, until " + visit.DayText(until) + ")"
	assert.Equal(t, [][5]string{
		{longest, "shop", "public-counts", "answers", "count"},
		{longest, "shop", "retain-days", "35", "60"},
		{longest, "shop", "ignore", "", "2 listed"},
		{"shell", "shop", "site", "shop.example", "shop.example, two.example"},
		{"shell", "shop", "key", "", keyName + "_… (read)"},
		{"shell", "shop", "key", keyName + "_…", "revoked"},
		{"shell", "shop", "link", "", link},
		{"shell", "shop", "link", linkName + "_…", "revoked"},
		{"shell", "shop", "note", "", "2026-11-22, all sites: A new version"},
		{"shell", "shop", "note", "2026-11-22, all sites: A new version", ""},
		{"shell", "shop", "webhook", "", "1: shop.example, https://hook.example/…"},
		{"shell", "shop", "webhook", "1: shop.example", ""},
		{"shell", "shop", "offset", "", "shop.example/a: hot 3, pv 2, uv 1"},
		{"shell", "shop", "offset", "shop.example/a: hot 3, pv 2, uv 1", ""},
		{"shell", "demo", "offset", "", "a.example/x: hot 1, pv 1, uv 1"},
		{"shell", "demo", "page", "a.example/x", "deleted"},
		{"shell", "demo", "visitor", "", "erased"},
		{"shell", "demo", "app", "demo", "deleted"},
	}, said)
	of, err := a.Changes(ctx, "demo", 2)
	require.NoError(t, err)
	require.Len(t, of, 2)
	assert.Equal(t, "deleted", of[0].IsNow, "also once the app is gone")

	// An account that may change an app does not see changes of an earlier app with the same name, whichever is
	// older.
	require.NoError(t, a.AddApp(ctx, "demo", app.Settings{Sites: []string{"b.example"}}))
	for _, then := range []string{`UPDATE apps SET created_at = '2019-01-01' WHERE name = 'demo'`, // it was loaded
		`UPDATE apps SET created_at = (SELECT max(at) FROM changes) WHERE name = 'demo'`,
		`DELETE FROM changes WHERE what = 'app' AND is_now = 'deleted'`, // the earlier one had moved away
	} {
		_, err = c.Tables().Exec(ctx, then)
		require.NoError(t, err)
		of, err = a.ChangesOf(ctx, "demo", 100)
		require.NoError(t, err)
		require.Len(t, of, 1, then)
		assert.Equal(t, "added: access sites; site b.example; tz UTC; public-counts off; visitor address", of[0].IsNow)
	}
}

// A new app had no settings before: its first row in the change history lists its initial settings, not changes to settings.
func TestAddedAppIsOneChange(t *testing.T) {
	c := newCommands(t)
	a := admin.NewAdmin(c.DB, make(app.Secret, app.SecretBytes))
	hashed, zone, off := app.ByHash, "Europe/Berlin", "off"
	require.NoError(t, a.AddApp(t.Context(), "mag", app.Settings{
		Sites: []string{"mag.example", "docs.mag.example"}, Visitor: &hashed, TZ: &zone,
		Titles: &off, Ignore: []string{"192.0.2.7"}, Goals: []string{"event:signup"},
	}))
	changes, err := a.Changes(t.Context(), "mag", 100)
	require.NoError(t, err)
	require.Len(t, changes, 1)
	assert.Equal(t, []string{"app", "", "added: access sites; site mag.example, docs.mag.example; tz Europe/Berlin; " +
		"public-counts off; visitor hashed; titles off; goal event:signup; ignore 1 listed",
	}, []string{changes[0].What, changes[0].Was, changes[0].IsNow})
}
