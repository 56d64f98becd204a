package handler

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"unicode"

	"github.com/labstack/echo/v4"

	"footfall/account"
	"footfall/visit"
	"footfall/visit/tag"
	"footfall/web"
)

const (
	asAccount     = "account"          // under which a request keeps who is signed in
	sessionCookie = "footfall_session" // what is secret of a session
	linkCookie    = "footfall_link"    // what is secret of a link that is followed
	formBytes     = 16 << 10
)

// signedIn returns the account that a browser is signed in to; nil where it is to none. Where a
// trusted proxy names somebody, that is who it is.
func (s *service) signedIn(c echo.Context) (found *account.Account, err error) {
	if has, is := c.Get(asAccount).(*account.Account); is {
		return has, nil
	}
	r := c.Request()
	if named := s.Proxies.names(r, s.SignInHeader); named != "" {
		found, err = s.Accounts.Named(r.Context(), named)
	} else {
		found, err = s.Accounts.Of(r.Context(), cookie(c, sessionCookie))
	}
	if err == nil {
		c.Set(asAccount, found)
	}
	return found, err
}

// readerOf is who looks at a page, as pages tell it.
func readerOf(a *account.Account) web.Reader {
	if a == nil {
		return web.Reader{}
	}
	return web.Reader{Name: a.Name, Owner: a.Owner, Leaves: a.Session != 0, Settings: "/settings"}
}

// enter answers /enter: a name and a password are typed, and the browser gets a session, under a name
// that nobody has known before.
func (d *dashboard) enter(c echo.Context) error {
	if c.Request().Method != http.MethodPost {
		return d.askToSignIn(c, http.StatusOK, c.QueryParam("to"), "", "")
	}
	form, err := d.form(c)
	if err != nil {
		return err
	}
	name := form.Get("name")
	if err := d.try(c, account.Folded(name)); err != nil {
		return err
	}
	session, err := d.Accounts.SignIn(c.Request().Context(), name, form.Get("password"), browserOf(c.Request()))
	if problem := problemOf(err); problem != "" {
		return d.askToSignIn(c, http.StatusForbidden, form.Get("to"), name, problem)
	}
	if err != nil {
		return err
	}
	d.setCookie(c, sessionCookie, session, int(account.SessionFor.Seconds()))
	return d.lead(c, http.StatusSeeOther, d.root+ownPath(form.Get("to")))
}

// ownPath is a path below which a reader is led after a form, unless it would lead elsewhere:
// browsers take // and /\ for another host, and read over tabs and line breaks.
func ownPath(to string) string {
	at, err := url.Parse(to)
	if err != nil || at.Host != "" || at.Scheme != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") ||
		strings.Contains(to, `\`) || strings.ContainsFunc(to, unicode.IsControl) {
		return "/"
	}
	return to
}

// try refuses those who guess.
func (d *dashboard) try(c echo.Context, name string) error {
	return d.Cells.Home().Counter.Try(d.peer(c.Request()), name)
}

// peer is the address of a caller; callers whose address is unknown share one limit.
func (s *service) peer(r *http.Request) netip.Addr {
	peer, _ := s.Proxies.client(r)
	return peer
}

// problemOf is what is wrong with a form, to be said in it; "" where nothing is, or something else.
func problemOf(err error) string {
	verr, is := errors.AsType[*visit.Error](err)
	if !is || verr.Kind != visit.Invalid && verr.Kind != visit.Forbidden {
		return ""
	}
	return strings.TrimPrefix(verr.Message, verr.Field+": ")
}

// leave ends the session of the browser.
func (d *dashboard) leave(c echo.Context, reader *account.Account) error {
	if c.Request().Method != http.MethodPost {
		return writePage(c, http.StatusOK, "no-store", web.Leave(d.place(c)))
	}
	if _, err := d.form(c); err != nil {
		return err
	}
	if reader != nil && reader.Session != 0 {
		if err := d.Accounts.EndSession(c.Request().Context(), reader.ID, reader.Session); err != nil {
			return err
		}
	}
	d.setCookie(c, sessionCookie, "", -1)
	return d.lead(c, http.StatusSeeOther, d.root+"/")
}

// askToSignIn shows the page on which somebody signs in.
func (d *dashboard) askToSignIn(c echo.Context, status int, to, name, problem string) error {
	first := false
	if err := d.within(c.Request().Context(), d.Cells.Home(), func(ctx context.Context) error {
		any, err := d.Accounts.Any(ctx)
		first = !any
		return err
	}); err != nil {
		return err
	}
	if _, err := d.signedIn(c); err != nil {
		return err
	}
	return writePage(c, status, "no-store", web.SignIn(d.place(c), to, name, problem, first))
}

// follow answers the address of a link: what is secret of it goes into a cookie, so that it stands in
// no address that is kept, or told to others, from then on.
func (d *dashboard) follow(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderReferrerPolicy, "no-referrer")
	if _, err := d.linkOf(c, c.Param("token")); err != nil {
		return err
	}
	d.setCookie(c, linkCookie, c.Param("token"), 0)
	return d.lead(c, http.StatusSeeOther, d.root+"/begin")
}

func (d *dashboard) linkOf(c echo.Context, token string) (account.Link, error) {
	link, err := d.Accounts.Link(c.Request().Context(), token)
	if refused, is := errors.AsType[*visit.Error](err); is && refused.Kind == visit.NotFound && token != "" {
		err = cmp.Or(d.Cells.Home().Counter.TryLink(d.peer(c.Request())), err)
	}
	return link, err
}

// begin answers /begin: whoever has followed a link chooses a password, and a name where there is none
// yet.
func (d *dashboard) begin(c echo.Context) error {
	token := cookie(c, linkCookie)
	link, err := d.linkOf(c, token)
	if err != nil {
		return err
	}
	if c.Request().Method != http.MethodPost {
		return writePage(c, http.StatusOK, "no-store", web.Begin(d.place(c), link.First, link.Name, "", ""))
	}
	form, err := d.form(c)
	if err != nil {
		return err
	}
	session, err := d.Accounts.Follow(c.Request().Context(), token, form.Get("name"), form.Get("password"), browserOf(c.Request()))
	if problem := problemOf(err); problem != "" {
		return writePage(c, http.StatusBadRequest, "no-store", web.Begin(d.place(c), link.First, link.Name, form.Get("name"), problem))
	}
	if err != nil {
		return err
	}
	d.setCookie(c, linkCookie, "", -1)
	d.setCookie(c, sessionCookie, session, int(account.SessionFor.Seconds()))
	to := "/"
	if link.First && !d.Cells.HasApps(c.Request().Context()) {
		to = "/new"
	}
	return d.lead(c, http.StatusSeeOther, d.root+to)
}

// form reads what a form sends, if it comes from a page of this service: browsers say where from
// (http.CrossOriginProtection). Cookies are sent by none of another site's forms, besides.
func (d *dashboard) form(c echo.Context) (url.Values, error) { return d.formUpTo(c, formBytes, false) }

func (d *dashboard) formUpTo(c echo.Context, most int64, files bool) (url.Values, error) {
	r := c.Request()
	if err := d.ownForms.Check(r); err != nil {
		return nil, visit.Errorf(visit.Forbidden, "form", "it came from a page of another site: open the page here, and send it again")
	}
	if files && strings.HasPrefix(r.Header.Get(echo.HeaderContentType), echo.MIMEMultipartForm) {
		err := readUpload(c.Response(), r)
		return r.PostForm, err
	}
	r.Body = http.MaxBytesReader(c.Response(), r.Body, most)
	if err := r.ParseForm(); err != nil {
		return nil, visit.Errorf(visit.Invalid, "form", "it could not be read: send it again")
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

// browserOf is what a browser and its system are called.
func browserOf(r *http.Request) string {
	agent := tag.ReadAgent(r.UserAgent()).With(hints(r.Header))
	if agent.Browser == "" {
		return "no browser"
	}
	return agent.Browser + ", " + agent.System
}
