package admin_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"footfall/admin"
)

func TestNotes(t *testing.T) {
	c := newCommands(t)
	ctx := t.Context()
	for _, wrong := range []struct{ app, day, text, site, says string }{
		{"nobody", "2019-06-29", "x", "", `there is no app "nobody"`},
		{"shop", "2019-02-29", "x", "", "day: "},
		{"shop", "", "x", "", "day: "},
		{"shop", "1066-10-14", "x", "", "day: 1066-10-14 is not a possible day"},
		{"shop", "2019-06-29", " ", "", "text: it is missing"},
		{"shop", "2019-06-29", strings.Repeat("ü", 201), "", "text: it is longer than 200 characters"},
		{"shop", "2019-06-29", "a\nb", "", "text: it has characters that cannot be seen"},
		{"shop", "2019-06-29", "a\u202eb", "", "text: it has characters that cannot be seen"},
		{"shop", "2019-06-29", "a\xff", "", "text: it has characters that cannot be seen"},
		{"shop", "2019-06-29", "x", "other.example", "site: app shop does not count other.example"},
		{"shop", "2019-06-29", "x", "a b", "site: "},
	} {
		_, err := c.Admin.AddNote(ctx, wrong.app, wrong.day, wrong.text, wrong.site)
		require.ErrorContains(t, err, wrong.says)
	}
	later, err := c.Admin.AddNote(ctx, "shop", "2019-06-30", strings.Repeat("ü", 200), "")
	require.NoError(t, err)
	note, err := c.Admin.AddNote(ctx, "shop", "2019-06-29", " A new version ", "SHOP.example")
	require.NoError(t, err)
	site := "shop.example"
	require.Equal(t, admin.NotesListRow{ID: note.ID, Site: &site, DayID: 20190629, Text: "A new version"}, note)
	notes, err := c.Admin.Notes(ctx, "shop")
	require.NoError(t, err)
	require.Equal(t, []admin.NotesListRow{later, note}, notes)

	_, err = c.Admin.RemoveNote(ctx, "demo", note.ID)
	require.ErrorContains(t, err, "the app has no note", "another app's")
	removed, err := c.Admin.RemoveNote(ctx, "shop", note.ID)
	require.NoError(t, err)
	require.Equal(t, note, removed)
	_, err = c.Admin.RemoveNote(ctx, "shop", note.ID)
	require.ErrorContains(t, err, "number: the app has no note")

	_, err = c.Tables().Exec(ctx, `INSERT INTO notes (app_id, day_id, text) SELECT id, 20190629, 'one of many'
		FROM apps, generate_series(1, 999) WHERE name = 'shop'`)
	require.NoError(t, err)
	_, err = c.Admin.AddNote(ctx, "shop", "2019-06-29", "x", "")
	require.ErrorContains(t, err, "the most it may have")
}
