package admin_test

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
)

func TestWebhooks(t *testing.T) {
	c := newCommands(t)
	ctx := t.Context()
	const url = "HTTPS://hook.example/"
	_, _, _, err := c.Admin.AddWebhook(ctx, "shop", "shop.example", "", url, false)
	require.ErrorContains(t, err, "secret-file: it is missing")
	secret := make(app.Secret, app.SecretBytes)
	c.Admin = admin.NewAdmin(c.DB, secret)
	for _, wrong := range []struct{ app, site, page, says string }{
		{"nobody", "shop.example", "", `there is no app "nobody"`},
		{"shop", "", "", "site: name a site, or a page"},
		{"shop", "shop.example", "shop.example/a", "site: name a site, or a page"},
		{"shop", "a b", "", "site: "},
		{"shop", "shop.example/a", "", "site: "},
		{"shop", "other.example", "", "site: app shop does not count other.example"},
		{"shop", "", "https://other.example/", "site: app shop does not count other.example"},
		{"shop", "", "shop.example", "uri: shop.example is a site"},
		{"shop", "", "shop.example/(other)", "uri: "},
		{"shop", "", "http://", "uri: "},
	} {
		_, _, _, err := c.Admin.AddWebhook(ctx, wrong.app, wrong.site, wrong.page, url, false)
		require.ErrorContains(t, err, wrong.says)
	}
	id, target, key, err := c.Admin.AddWebhook(ctx, "shop", "SHOP.example", "", url, false)
	require.NoError(t, err)
	require.Equal(t, "shop.example", target)
	require.Len(t, key, 32)
	_, _, another, err := c.Admin.AddWebhook(ctx, "shop", "shop.example", "", url, false)
	require.NoError(t, err)
	require.NotEqual(t, key, another)
	hooks, err := c.Admin.Webhooks(ctx, "shop")
	require.NoError(t, err)
	require.Len(t, hooks, 2)
	require.Equal(t, admin.WebhooksListRow{ID: id, Uri: "shop.example", Url: url, Since: hooks[0].Since,
		TryAt: hooks[0].TryAt, Answers: []string{}, Salt: hooks[0].Salt}, hooks[0])
	// The key differs from the key in another database with the same secret and webhook ID. A webhook added by 0.1.0 keeps its
	// key.
	require.Equal(t, secret.WebhookKey(id, hooks[0].Salt), key)
	require.NotEqual(t, secret.WebhookKey(id, hooks[1].Salt), key)
	require.Equal(t, "bf8b7ef9927b6add8989b024b90d7a65f8b2192d41ecdc006880d7300a43e4c5", hex.EncodeToString(secret.WebhookKey(7, nil)))

	_, err = c.Admin.RemoveWebhook(ctx, "demo", id)
	require.ErrorContains(t, err, "number: the app has no webhook", "another app's")
	target, err = c.Admin.RemoveWebhook(ctx, "shop", id)
	require.NoError(t, err)
	require.Equal(t, "shop.example", target)
	_, err = c.Admin.RemoveWebhook(ctx, "shop", id)
	require.ErrorContains(t, err, "number: the app has no webhook")

	_, err = c.Tables().Exec(ctx, `INSERT INTO webhooks (app_id, uri, url, private, seen)
		SELECT id, 'shop.example', 'https://a.example', false, 0 FROM apps, generate_series(1, 99) WHERE name = 'shop'`)
	require.NoError(t, err)
	_, _, _, err = c.Admin.AddWebhook(ctx, "shop", "shop.example", "", url, false)
	require.ErrorContains(t, err, "the most it may have")
}
