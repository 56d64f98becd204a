package handler

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"

	"footfall/counter"
	"footfall/visit"
	"footfall/web"
)

// note shows the notes of an app to those who may write them, and adds or removes one. Whether
// there is such an app others do not learn.
func (d *dashboard) note(c echo.Context) error {
	r := c.Request()
	sent, form := r.URL.Query(), url.Values(nil)
	if r.Method == http.MethodPost {
		var err error
		if form, err = d.form(c); err != nil {
			return err
		}
		sent = form
	}
	name := sent.Get("app")
	peer, _ := d.proxies.client(r) // callers whose address is unknown share one limit
	app, err := d.counter.Looks(r.Context(), name, cookie(c, sessionCookie+name), peer)
	if errors.Is(err, counter.ErrNotShown) || err == nil && !app.MayNote() {
		return d.askForKey(c, http.StatusForbidden, "/dash/"+name, "To write notes, sign in with a key of the scopes read and note.")
	}
	if err != nil {
		return err
	}
	if err := app.CheckRate(); err != nil {
		return err
	}
	page := web.Notes{App: app.App, Token: d.formToken(c), Day: visit.DateOf(app.Today).Format("2006-01-02"), Site: sent.Get("site")}
	if form == nil {
		return d.showNotes(c, app, http.StatusOK, page)
	}
	told, wrong := errors.AsType[*visit.Error](changeNotes(c, app, form))
	if wrong && told.Kind == visit.Invalid {
		page.Day, page.Text, page.Problem = form.Get("day"), form.Get("text"), told.Message
		return d.showNotes(c, app, http.StatusBadRequest, page)
	}
	if wrong {
		return told
	}
	return c.Redirect(http.StatusSeeOther, "/note?"+url.Values{"app": {app.App}, "site": {page.Site}}.Encode())
}

func changeNotes(c echo.Context, app *counter.Reading, form url.Values) error {
	ctx := c.Request().Context()
	if form.Has("remove") {
		number, err := strconv.ParseInt(form.Get("remove"), 10, 32)
		if err != nil {
			return visit.Errorf(visit.Invalid, "remove", "%.32q is not the number of a note", form.Get("remove"))
		}
		return app.RemoveNote(ctx, int32(number))
	}
	return app.AddNote(ctx, form.Get("day"), form.Get("text"), form.Get("site"))
}

func (d *dashboard) showNotes(c echo.Context, app *counter.Reading, status int, page web.Notes) error {
	notes, err := app.Notes(c.Request().Context())
	if err != nil {
		return err
	}
	for _, n := range notes {
		page.All = append(page.All, web.Note{ID: n.ID, Day: n.Day, Site: n.Site, Text: n.Text})
	}
	p, err := page.Page()
	if err != nil {
		return err
	}
	return writePage(c, status, "no-store", p)
}
