package admin_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/db/dbtest"
)

// If any offset is wrong none is set, and all faults are listed.
func TestOffsetsAreChecked(t *testing.T) {
	c := newCommands(t)
	ctx := t.Context()
	all := []struct {
		offset admin.Offset
		says   string
	}{
		{admin.Offset{URI: "shop.example/a", Hot: 3, PV: 5, UV: 5}, "hot: 3 is less than uv, 5"},
		{admin.Offset{URI: "shop.example/a", Hot: 9, PV: 5, UV: 6}, "pv: 5 is less than uv, 6"},
		{admin.Offset{URI: "shop.example/a", Hot: 9, PV: 5, UV: -1}, "uv: -1 is less than 0"},
		{admin.Offset{URI: "shop.example/a", Hot: 1_000_000_000_000_001}, "hot: 1000000000000001 is more than 1000000000000000"},
		{admin.Offset{URI: "other.example/a", Hot: 1}, "uri: app shop does not count other.example"},
		{admin.Offset{URI: "ftp://shop.example/", Hot: 1}, "uri: "},
		{admin.Offset{URI: "shop.example/(deleted)", Hot: 1}, "uri: shop.example/(deleted) collects the numbers of several other pages"},
		{admin.Offset{URI: "(other)", Hot: 1}, "uri: (other) collects the numbers of several other pages"},
		{admin.Offset{URI: "shop.example", Hot: 1, Fault: "hot: no"}, "hot: no"},
	}
	var list []admin.Offset
	for i, wrong := range all {
		_, err := c.Admin.SetOffsets(ctx, "shop", []admin.Offset{wrong.offset}, false)
		require.ErrorContains(t, err, wrong.says)
		wrong.offset.Line = i + 2
		list = append(list, wrong.offset)
	}
	// All faults are reported at once, and no offset is set.
	list = append(list, admin.Offset{URI: "shop.example/well", Hot: 1, Line: 50}, admin.Offset{URI: "http://SHOP.example/well#x", Hot: 2,
		Line: 51})
	_, err := c.Admin.SetOffsets(ctx, "shop", list, false)
	for i, wrong := range all {
		require.ErrorContains(t, err, fmt.Sprintf("line %d: %s", i+2, wrong.says))
	}
	require.ErrorContains(t, err, "line 51: uri: shop.example/well is on line 50, too")
	require.Zero(t, c.One(t, `SELECT count(*) FROM offsets`))
	_, err = c.Admin.SetOffsets(ctx, "nobody", nil, false)
	require.ErrorContains(t, err, `there is no app "nobody"`)

	// The same offsets again change nothing, and neither does a trial, which reports the changes.
	well := []admin.Offset{{URI: "shop.example/a", Hot: 3}, {URI: "shop.example/b", Hot: 3}}
	for _, set := range []struct {
		try  bool
		want admin.OffsetCounts
	}{{true, admin.OffsetCounts{Added: 2}}, {false, admin.OffsetCounts{Added: 2}}, {false, admin.OffsetCounts{Same: 2}}} {
		done, err := c.Admin.SetOffsets(ctx, "shop", well, set.try)
		require.NoError(t, err)
		require.Equal(t, set.want, done)
	}
	well[1].UV, well[1].PV = 1, 1
	done, err := c.Admin.SetOffsets(ctx, "shop", well, true)
	require.NoError(t, err)
	require.Equal(t, admin.OffsetCounts{Changed: 1, Same: 1}, done)
	require.Zero(t, c.One(t, `SELECT sum(uv) FROM offsets`))

	many := make([]admin.Offset, 250)
	for i := range many {
		many[i] = admin.Offset{URI: "shop.example", Hot: -1, Line: i + 2}
	}
	_, err = c.Admin.SetOffsets(ctx, "shop", many, false)
	require.ErrorContains(t, err, "and 150 more")
}

// Deleting an app, with its offsets, keys and links, waits for a change of offsets before it raises the epoch of
// apps, so that it holds no lock that the other transaction takes next.
func TestDeletedAppWaitsForOffsets(t *testing.T) {
	c := newCommands(t)
	_, err := c.Admin.SetOffsets(t.Context(), "shop", []admin.Offset{{URI: "shop.example/a", Hot: 3, PV: 2, UV: 1}}, false)
	require.NoError(t, err)
	changing, err := c.Conn(t).Begin(t.Context())
	require.NoError(t, err)
	_, err = changing.Exec(t.Context(), `UPDATE epochs SET value = value + 1 WHERE name = 'offsets'`)
	require.NoError(t, err)
	deleted := make(chan error, 1)
	go func() { deleted <- c.Admin.DeleteApp(context.Background(), "shop") }()
	require.Eventually(t, func() bool {
		return c.One(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
	}, dbtest.Patience, dbtest.Tick)
	_, err = changing.Exec(t.Context(), `SELECT FROM epochs WHERE name = 'apps' FOR UPDATE NOWAIT`)
	require.NoError(t, err)
	require.NoError(t, changing.Commit(t.Context()))
	require.NoError(t, <-deleted)
}
