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
	asAccount     = "account"          // context key of the signed-in account
	sessionCookie = "footfall_session" // name of the cookie with the session's token
	linkCookie    = "footfall_link"    // name of the cookie with the token of an opened link
	deviceCookie  = "footfall_device_" // prefix of cookie names; followed by the ID of an account that the browser has signed in to
	linkFor       = time.Hour          // lifetime of linkCookie; short, because other users of the computer could use the link
	formBytes     = 16 << 10
)

// signedIn returns the account that the browser is signed in to, or nil. If a trusted proxy sends the name of an account, this
// account takes precedence over the browser's session.
func (s *service) signedIn(c echo.Context) (found *account.Account, err error) {
	if has, is := c.Get(asAccount).(*account.Account); is {
		return has, nil
	}
	r := c.Request()
	if named := s.Proxies.signedInUser(r, s.SignInHeader); named != "" {
		found, err = s.Accounts.FindOrAdd(r.Context(), named)
	} else {
		found, err = s.Accounts.FindBySession(r.Context(), s.session(c))
	}
	if err == nil {
		c.Set(asAccount, found)
	}
	return found, err
}

// session returns the token of the browser's session. Over https, it accepts a cookie with the plain name (without __Host- or
// __Secure-) only if Footfall 0.2.0 created the session. Any sibling host can set a cookie with the plain name, but it would need
// the token of a 0.2.0 session. These sessions expire within 30 days after the update.
func (s *service) session(c echo.Context) string {
	session := s.cookie(c, sessionCookie)
	if former := plainCookie(c, sessionCookie); session == "" && account.IsFormerSession(former) {
		return former
	}
	return session
}

// readerOf returns the data that pages show about their reader, the user who is signed in.
func readerOf(a *account.Account) web.Reader {
	if a == nil {
		return web.Reader{}
	}
	return web.Reader{Name: a.Name, Owner: a.Owner, Leaves: a.Session != 0, Settings: "/settings"}
}

// enter handles /enter, the page for signing in with a name and a password. The browser then gets a new session token.
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
	return d.redirect(c, http.StatusSeeOther, d.root+ownPath(form.Get("to")))
}

// letIn sets the cookie of a new session, ends the browser's previous session, and sets a device cookie. In later sign-ins, the
// device cookie shows that the browser has signed in to the account before.
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
	d.setCookie(c, sessionCookie, session, account.SessionLifetime)
	d.setCookie(c, deviceCookie+strconv.Itoa(int(id)), device, account.DeviceLifetime)
	return nil
}

// ownPath returns the path to redirect to after a form. It returns "/" if the path could lead to another host: browsers treat //
// and /\ as the start of a host, and skip tabs and line breaks.
func ownPath(to string) string {
	at, err := url.Parse(to)
	if err != nil || at.Host != "" || at.Scheme != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") ||
		strings.Contains(to, `\`) || strings.ContainsFunc(to, unicode.IsControl) {
		return "/"
	}
	return to
}

// try returns an error if the caller has tried too many passwords. Otherwise it returns the Accounts that checks the next
// password. A browser with a session or an earlier sign-in has its own limits, which other callers cannot use up.
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

// peer returns the caller's address, or the zero Addr if the address is not available. So callers without an address share one
// rate limit.
func (s *service) peer(r *http.Request) netip.Addr {
	peer, _ := s.Proxies.client(r)
	return peer
}

// formProblem returns the error to show next to a form, without the name of its field. It returns nil if err is nil, or if it is
// not about the form's values.
func formProblem(err error) *visit.Error {
	verr, is := errors.AsType[*visit.Error](err)
	if !is || verr.Kind != visit.Invalid && verr.Kind != visit.Forbidden {
		return nil
	}
	return visit.InField("", verr)
}

// leave signs the browser out.
func (d *dashboard) leave(c echo.Context, reader *account.Account) error {
	if c.Request().Method != http.MethodPost {
		return writePage(c, http.StatusOK, "no-store", web.Leave(d.pageContext(c)))
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
	return d.redirect(c, http.StatusSeeOther, d.root+"/")
}

func (d *dashboard) askToSignIn(c echo.Context, status int, to, name string, problem *visit.Error) error {
	if !d.hasAccounts.Load() {
		if err := d.readInPlace(c.Request().Context(), d.Cells.Home().Strangers, func(ctx context.Context) error {
			any, err := d.Accounts.Exist(ctx)
			d.hasAccounts.Store(any)
			return err
		}); err != nil {
			return err
		}
	}
	if _, err := d.signedIn(c); err != nil {
		return err
	}
	return writePage(c, status, "no-store", web.SignIn(d.pageContext(c), to, name, problem, !d.hasAccounts.Load()))
}

// follow handles an invitation link. It moves the token into a cookie and redirects. So the address of the next page, which
// browsers store and send to other sites, does not contain the token.
func (d *dashboard) follow(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderReferrerPolicy, "no-referrer")
	if _, err := d.linkOf(c, c.Param("token")); err != nil {
		return err
	}
	d.setCookie(c, linkCookie, c.Param("token"), linkFor)
	return d.redirect(c, http.StatusSeeOther, d.root+"/begin")
}

func (d *dashboard) linkOf(c echo.Context, token string) (account.Link, error) {
	link, err := d.Accounts.Link(c.Request().Context(), token)
	if refused, is := errors.AsType[*visit.Error](err); is && refused.Kind == visit.NotFound && token != "" {
		err = cmp.Or(d.Cells.Home().Counter.TryLink(d.peer(c.Request())), err)
	}
	return link, err
}

// begin handles /begin, where a user who has followed a link chooses a password, and also a name if the account has none.
func (d *dashboard) begin(c echo.Context) error {
	token := d.cookie(c, linkCookie)
	link, err := d.linkOf(c, token)
	if err != nil {
		return err
	}
	if c.Request().Method != http.MethodPost {
		return writePage(c, http.StatusOK, "no-store", web.Begin(d.pageContext(c), link.First, link.Name, "", nil))
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
		return writePage(c, http.StatusBadRequest, "no-store", web.Begin(d.pageContext(c), link.First, link.Name, form.Get("name"), problem))
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
	return d.redirect(c, http.StatusSeeOther, d.root+to)
}

// form reads a form, and checks that a page of this service sent the form (http.CrossOriginProtection). In addition, Footfall's
// cookies are SameSite cookies, so browsers do not send them with forms of other sites.
func (d *dashboard) form(c echo.Context) (url.Values, error) { return d.formUpTo(c, formBytes, false) }

func (d *dashboard) formUpTo(c echo.Context, most int64, files bool) (url.Values, error) {
	r := c.Request()
	if err := d.ownForms.Check(r); err != nil {
		return nil, visit.Errorf(visit.Forbidden, "form",
			"it was sent from a page of another site: open the page here, and send it again")
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

// cookieName returns the full name of a cookie. Over https the name has a prefix, so that browsers accept the cookie only from
// this host, not from a sibling host or over http.
func (s *service) cookieName(r *http.Request, name string) string {
	switch {
	case !strings.HasPrefix(s.origin(r), "https:"):
		return name
	case s.root == "":
		return "__Host-" + name
	}
	return "__Secure-" + name // browsers accept the prefix __Host- only for cookies with the path /
}

// setCookie sets a cookie. If lasts is negative, it deletes the cookie. With SameSite=Lax, browsers send the cookie when the user
// follows a link in an email, but not with forms and images of another site.
func (s *service) setCookie(c echo.Context, name, value string, lasts time.Duration) {
	named := s.cookieName(c.Request(), name)
	set := &http.Cookie{Name: named, Value: value, Path: s.root + "/", MaxAge: int(lasts.Seconds()), HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: named != name}
	if lasts < 0 {
		set.MaxAge = -1
	}
	c.SetCookie(set)
	if named != name && plainCookie(c, name) != "" { // delete the cookie with the name that Footfall 0.2.0 used over https
		former := *set
		former.Name, former.Value, former.MaxAge = name, "", -1
		c.SetCookie(&former)
	}
}

// browserOf returns the names of the browser and its operating system, as shown in the list of sessions.
func browserOf(r *http.Request) string {
	agent := tag.ReadAgent(r.UserAgent()).With(hints(r.Header))
	if agent.Browser == "" {
		return "no browser"
	}
	return agent.Browser + ", " + agent.System
}
