package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"

	"footfall/db"
	"footfall/visit"
	"footfall/webhook"
)

const (
	mostWebhooks     = 100 // maximum number of webhooks of an app
	webhookSaltBytes = 16
)

// AddWebhook adds a webhook for a site or a page. Either site or page is "". From now on, Footfall calls the URL when the
// number of visitors reaches a round number. AddWebhook returns the webhook's ID, its site or page, and the key with which the
// receiver verifies calls.
func (a *Admin) AddWebhook(ctx context.Context, of, site, page, url string, private bool) (id int32, target string, key []byte, err error) {
	if len(a.secret) == 0 {
		return 0, "", nil, visit.Errorf(visit.Invalid, "secret-file",
			"it is missing: calls are signed with a key derived from the secret: name the secret file of the service")
	}
	if err := webhook.CheckURL(url, private); err != nil {
		return 0, "", nil, err
	}
	salt := make([]byte, webhookSaltBytes)
	_, _ = rand.Read(salt) // never fails
	err = wrap("add a webhook to app "+of, a.withApp(ctx, of, func(q queries, row *db.App) (err error) {
		if target, err = webhookTarget(row, site, page); err != nil {
			return err
		}
		id, err = q.WebhookAdd(ctx, WebhookAddParams{AppID: row.ID, Uri: target, Url: url, Private: private, Salt: salt,
			Most: mostWebhooks})
		if err != nil {
			return replaceNoRows(err, visit.Errorf(visit.Invalid, "url",
				"the app has %d webhooks, the most it may have: remove some", mostWebhooks))
		}
		return q.note(ctx, of, "webhook", "", fmt.Sprintf("%d: %s, %s", id, visit.Shown(target), withoutSecret(url)))
	}))
	return id, target, a.secret.WebhookKey(id, salt), err
}

func webhookTarget(row *db.App, site, page string) (string, error) {
	if (site == "") == (page == "") {
		return "", visit.Errorf(visit.Invalid, "site", "name a site, or a page with --uri")
	}
	var err error
	if page != "" {
		site, page, err = typedPage(row, page)
	}
	if err != nil || site == visit.EventSite {
		return cmp.Or(page, site), err
	}
	counted, err := siteOf(row, site)
	return cmp.Or(page, *counted), err
}

// Webhooks lists the webhooks of an app.
func (a *Admin) Webhooks(ctx context.Context, app string) ([]WebhooksListRow, error) {
	return list(ctx, a, "webhooks", app, queries.WebhooksList)
}

// TestWebhook makes a test call to a webhook and returns the result. Only one test per app runs at a time.
func (a *Admin) TestWebhook(ctx context.Context, app, number string, log *slog.Logger) (said visit.Text, err error) {
	if _, testing := a.tests.LoadOrStore(app, true); testing {
		return said, visit.Errorf(visit.TooMany, "", "a test call of this app is being made: wait until it has ended")
	}
	defer a.tests.Delete(app)
	hooks, err := a.Webhooks(ctx, app)
	for _, w := range hooks {
		if fmt.Sprint(w.ID) == number && len(a.secret) > 0 {
			sender := webhook.NewSender(a.db, a.secret.WebhookKey, webhook.Options{Log: log})
			return sender.Test(ctx, w.ID, w.Salt, w.Url, w.Private), nil
		}
	}
	if err == nil {
		err = visit.Errorf(visit.NotFound, "number", "the app has no webhook %.20q that this service can sign for", number)
	}
	return said, err
}

// RemoveWebhook removes a webhook by its ID, and returns its site or page.
func (a *Admin) RemoveWebhook(ctx context.Context, app string, id int32) (target string, err error) {
	err = a.withApp(ctx, app, func(q queries, row *db.App) (err error) {
		target, err = q.WebhookRemove(ctx, row.ID, id)
		if err != nil {
			return replaceNoRows(err, visit.Errorf(visit.NotFound, "number",
				"the app has no webhook %d: `footfall app webhook list` lists its webhooks",
				id))
		}
		return q.note(ctx, app, "webhook", fmt.Sprintf("%d: %s", id, visit.Shown(target)), "")
	})
	return target, wrap("remove a webhook of app "+app, err)
}
