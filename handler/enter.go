package handler

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"footfall/counter"
	"footfall/visit"
	"footfall/web"
)

// enter answers /enter: a key is typed, and the browser gets a session.
func (d *dashboard) enter(c echo.Context) error {
	if c.Request().Method != http.MethodPost {
		return d.askForKey(c, http.StatusOK, "", "")
	}
	form, err := d.form(c)
	if err != nil {
		return err
	}
	peer, _ := d.Proxies.client(c.Request())
	app, session, err := d.counter.SignIn(c.Request().Context(), strings.TrimSpace(form.Get("key")), peer)
	var verr *visit.Error
	if errors.As(err, &verr) && verr.Kind == visit.Forbidden {
		return d.askForKey(c, http.StatusForbidden, form.Get("to"), "This key "+strings.TrimPrefix(verr.Message, "key: it ")+".")
	}
	if err != nil {
		return err
	}
	d.setCookie(c, sessionCookie+app, session, int(counter.SessionFor.Seconds()))
	to, embeds := "/dash/"+app, "/embed?app="+app
	if after, is := strings.CutPrefix(form.Get("to"), to); is && (after == "" || strings.ContainsRune("/?", rune(after[0]))) {
		to += after
	} else if form.Get("to") == embeds {
		to = embeds
	}
	return c.Redirect(http.StatusSeeOther, d.root+to)
}

// leave ends all sessions that the browser has.
func (d *dashboard) leave(c echo.Context) error {
	if c.Request().Method != http.MethodPost {
		return writePage(c, http.StatusOK, "no-store", web.Leave(d.root, d.formToken(c)))
	}
	if _, err := d.form(c); err != nil {
		return err
	}
	for _, has := range c.Cookies() {
		if strings.HasPrefix(has.Name, sessionCookie) {
			d.setCookie(c, has.Name, "", -1)
		}
	}
	return c.Redirect(http.StatusSeeOther, d.root+"/")
}

// askForKey shows the page on which a key is typed. It is made for one browser, which has the token
// of its form in a cookie, too.
func (d *dashboard) askForKey(c echo.Context, status int, to, problem string) error {
	return writePage(c, status, "no-store", web.SignIn(d.root, d.formToken(c), to, problem))
}

// formToken is what a form of this browser carries. Another site's page can make a browser send a
// form, but not read the token for it.
func (d *dashboard) formToken(c echo.Context) string {
	if has := cookie(c, formCookie); len(has) == base64.RawURLEncoding.EncodedLen(sha256.Size) {
		return has
	}
	var random [sha256.Size]byte
	_, _ = rand.Read(random[:]) // never fails: it would end the process
	token := base64.RawURLEncoding.EncodeToString(random[:])
	d.setCookie(c, formCookie, token, 0)
	return token
}

func (d *dashboard) form(c echo.Context) (url.Values, error) {
	r := c.Request()
	r.Body = http.MaxBytesReader(c.Response(), r.Body, formBytes)
	if err := r.ParseForm(); err != nil {
		return nil, visit.Errorf(visit.Invalid, "form", "it could not be read: send it again")
	}
	token := cookie(c, formCookie)
	if token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(r.PostForm.Get("token"))) != 1 {
		return nil, visit.Errorf(visit.Forbidden, "form",
			"it did not come from a page that this browser was shown, or the browser keeps no cookies: go back, load the page again and send it")
	}
	return r.PostForm, nil
}

func cookie(c echo.Context, name string) string {
	if has, err := c.Cookie(name); err == nil {
		return has.Value
	}
	return ""
}

// setCookie gives the browser a cookie for so many seconds (0: until it is closed), or takes it
// away. A link in a mail is followed with it; a form or an image of another site is sent without.
func (d *dashboard) setCookie(c echo.Context, name, value string, seconds int) {
	c.SetCookie(&http.Cookie{
		Name: name, Value: value, Path: d.root + "/", MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: strings.HasPrefix(d.origin(c.Request()), "https:"),
	})
}
