package counter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/visit"
)

func TestShares(t *testing.T) {
	t.Parallel()
	in := plain.newInstance(t, counter.Options{})
	in.shop(t, app.Settings{})
	ctx := t.Context()
	for _, c := range []struct{ app, site, until, says string }{
		{"nobody", "", "", `there is no app "nobody"`},
		{"shop", "other.example", "", "site: app shop does not count other.example"},
		{"shop", "shop.example/page", "", "site: "},
		{"shop", "", "2019-06-28", "until: 2019-06-28 is in the past"},
		{"shop", "", "yesterday", "is in the past"},
		{"shop", "", "2099-01-01", "five years at most"},
		{"shop", "", "soon", `until: "soon" is not a day`},
	} {
		_, _, err := in.Admin.AddShare(ctx, c.app, c.site, c.until)
		require.ErrorContains(t, err, c.says)
	}
	all, lastDay, err := in.Admin.AddShare(ctx, "shop", "", "")
	require.NoError(t, err)
	one, _, err := in.Admin.AddShare(ctx, "shop", "SHOP.example", visit.DateOf(lastDay).Format("20060102"))
	require.NoError(t, err)
	require.Regexp(t, `^[a-z2-9]{8}_[A-Za-z0-9_-]{43}$`, all)

	shares, err := in.Admin.Shares(ctx, "shop")
	require.NoError(t, err)
	require.Len(t, shares, 2)
	require.Equal(t, all[:8], shares[0].Name)
	require.Empty(t, shares[0].Site)
	require.Equal(t, "shop.example", *shares[1].Site)
	require.Equal(t, lastDay, shares[1].LastDay)

	require.ErrorContains(t, in.Admin.RevokeShare(ctx, "demo", one), "app demo has no link")
	require.NoError(t, in.Admin.RevokeShare(ctx, "shop", one[:8]))
	require.ErrorContains(t, in.Admin.RevokeShare(ctx, "shop", one), "has no link")
	shares, err = in.Admin.Shares(ctx, "shop")
	require.NoError(t, err)
	require.Nil(t, shares[0].RevokedAt)
	require.NotNil(t, shares[1].RevokedAt)

	// A link works until the end of its last day.
	in.Clock.Set(visit.DateOf(lastDay).Add(23 * time.Hour))
	_, err = in.AuthorizeLink(ctx, all, peer)
	require.NoError(t, err)
	in.Clock.Set(visit.DateOf(lastDay).Add(24 * time.Hour))
	_, err = in.AuthorizeLink(ctx, all, peer)
	var verr *visit.Error
	require.ErrorAs(t, err, &verr)
	require.Equal(t, visit.NotFound, verr.Kind)

	// The table itself refuses the same values as the command.
	for _, wrong := range []string{
		`last_day = 20991231`, `last_day = 20190229`, `last_day = 20200101`, `site = ''`, `hash = 'x'`,
		`name = (SELECT o.name FROM shares AS o WHERE o.name <> $1)`, `app_id = 999`,
	} {
		_, err := in.Tables().Exec(ctx, `UPDATE shares SET `+wrong+` WHERE name = $1`, all[:8])
		require.Error(t, err, wrong)
	}
}
