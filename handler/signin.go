package handler

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
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
	deviceCookie  = "footfall_device_" // before the number of an account that the browser is known to
	linkFor       = time.Hour          // for a followed link: the next user of a shared machine must not find it
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
		found, err = s.Accounts.Of(r.Context(), s.session(c))
	}
	if err == nil {
		c.Set(asAccount, found)
	}
	return found, err
}

// session returns the session of a browser. Over https one by the plain name is accepted only if Footfall 0.2.0 made it: any
// sibling host can set a cookie of that name, but only the owner of a session can, and those sessions end within 30 days.
func (s *service) session(c echo.Context) string {
	session := s.cookie(c, sessionCookie)
	if former := plainCookie(c, sessionCookie); session == "" && account.IsFormerSession(former) {
		return former
	}
	return session
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
		return d.askToSignIn(c, http.StatusOK, c.QueryParam("to"), "", nil)
	}
	form, err := d.form(c)
	if err != nil {
		return err
	}
	name := form.Get("name")
	accounts, err := d.try(c, name, "")
	if err != nil {
		return err
	}
	session, err := accounts.SignIn(c.Request().Context(), name, form.Get("password"), browserOf(c.Request()))
	if problem := formProblem(err); problem != nil {
		return d.askToSignIn(c, http.StatusForbidden, form.Get("to"), name, problem)
	}
	if err != nil {
		return err
	}
	if err := d.letIn(c, session); err != nil {
		return err
	}
	return d.lead(c, http.StatusSeeOther, d.root+ownPath(form.Get("to")))
}

// letIn gives the browser a session, ends its session of before, and makes it known to the account.
func (d *dashboard) letIn(c echo.Context, session string) error {
	ctx := c.Request().Context()
	before, err := d.signedIn(c)
	if err == nil && before != nil && before.Session != 0 {
		err = d.Accounts.EndSession(ctx, before.ID, before.Session)
	}
	if err != nil {
		return err
	}
	id, device, err := d.Accounts.NewDevice(ctx, session)
	if err != nil {
		return err
	}
	d.setCookie(c, sessionCookie, session, account.SessionFor)
	d.setCookie(c, deviceCookie+strconv.Itoa(int(id)), device, account.DeviceFor)
	return nil
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

// try refuses callers who guess passwords for a name, and returns the accounts that check the next one: for a browser that is
// known to the account, or has a session of it, with tries and a place that strangers cannot take.
func (d *dashboard) try(c echo.Context, name, session string) (*account.Accounts, error) {
	counter, device, folded := d.Cells.Home().Counter, session, account.Folded(name)
	if strings.Contains(c.Request().Header.Get(echo.HeaderCookie), deviceCookie) {
		known, err := d.Accounts.Device(c.Request().Context(), name, func(id int32) string {
			return d.cookie(c, deviceCookie+strconv.Itoa(int(id)))
		})
		if err != nil {
			return nil, err
		}
		device = cmp.Or(known, device)
	}
	if device == "" {
		return d.Accounts, counter.Try(d.peer(c.Request()), folded)
	}
	return d.Accounts.ForDevice(), counter.TryDevice(device, folded)
}

// peer is the address of a caller; callers whose address is unknown share one limit.
func (s *service) peer(r *http.Request) netip.Addr {
	peer, _ := s.Proxies.client(r)
	return peer
}

// formProblem returns the error to show in the form, without its field; nil if err is nil or is not about the form.
func formProblem(err error) *visit.Error {
	verr, is := errors.AsType[*visit.Error](err)
	if !is || verr.Kind != visit.Invalid && verr.Kind != visit.Forbidden {
		return nil
	}
	return visit.InField("", verr)
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
func (d *dashboard) askToSignIn(c echo.Context, status int, to, name string, problem *visit.Error) error {
	if !d.hasAccounts.Load() {
		if err := d.within(c.Request().Context(), d.Cells.Home().Strangers, func(ctx context.Context) error {
			any, err := d.Accounts.Any(ctx)
			d.hasAccounts.Store(any)
			return err
		}); err != nil {
			return err
		}
	}
	if _, err := d.signedIn(c); err != nil {
		return err
	}
	return writePage(c, status, "no-store", web.SignIn(d.place(c), to, name, problem, !d.hasAccounts.Load()))
}

// follow answers the address of a link: what is secret of it goes into a cookie, so that it stands in
// no address that is kept, or told to others, from then on.
func (d *dashboard) follow(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderReferrerPolicy, "no-referrer")
	if _, err := d.linkOf(c, c.Param("token")); err != nil {
		return err
	}
	d.setCookie(c, linkCookie, c.Param("token"), linkFor)
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
	token := d.cookie(c, linkCookie)
	link, err := d.linkOf(c, token)
	if err != nil {
		return err
	}
	if c.Request().Method != http.MethodPost {
		return writePage(c, http.StatusOK, "no-store", web.Begin(d.place(c), link.First, link.Name, "", nil))
	}
	form, err := d.form(c)
	if err != nil {
		return err
	}
	if err := d.Cells.Home().Counter.TryDevice("", "link "+token); err != nil {
		return err
	}
	session, err := d.Accounts.ForDevice().Follow(c.Request().Context(), token, form.Get("name"), form.Get("password"), browserOf(c.Request()))
	if problem := formProblem(err); problem != nil {
		return writePage(c, http.StatusBadRequest, "no-store", web.Begin(d.place(c), link.First, link.Name, form.Get("name"), problem))
	}
	if err != nil {
		return err
	}
	d.setCookie(c, linkCookie, "", -1)
	if err := d.letIn(c, session); err != nil {
		return err
	}
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

func plainCookie(c echo.Context, name string) string {
	if has, err := c.Cookie(name); err == nil {
		return has.Value
	}
	return ""
}

func (s *service) cookie(c echo.Context, name string) string {
	return plainCookie(c, s.cookieName(c.Request(), name))
}

// cookieName returns the name of a cookie in browsers. Over https it has a prefix, by which they accept the cookie from this host
// alone, and not from a sibling host or over http.
func (s *service) cookieName(r *http.Request, name string) string {
	switch {
	case !strings.HasPrefix(s.origin(r), "https:"):
		return name
	case s.root == "":
		return "__Host-" + name
	}
	return "__Secure-" + name // the other prefix allows no path
}

// setCookie gives the browser a cookie for some time, or takes it away (a negative time). A link in a mail is followed with it. A
// form or an image of another site is sent without.
func (s *service) setCookie(c echo.Context, name, value string, lasts time.Duration) {
	named := s.cookieName(c.Request(), name)
	set := &http.Cookie{Name: named, Value: value, Path: s.root + "/", MaxAge: int(lasts.Seconds()), HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: named != name}
	if lasts < 0 {
		set.MaxAge = -1
	}
	c.SetCookie(set)
	if named != name && plainCookie(c, name) != "" { // as Footfall 0.2.0 set it
		former := *set
		former.Name, former.Value, former.MaxAge = name, "", -1
		c.SetCookie(&former)
	}
}

// browserOf is what a browser and its system are called.
func browserOf(r *http.Request) string {
	agent := tag.ReadAgent(r.UserAgent()).With(hints(r.Header))
	if agent.Browser == "" {
		return "no browser"
	}
	return agent.Browser + ", " + agent.System
}
