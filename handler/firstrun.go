package handler

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"footfall/account"
	"footfall/admin"
	"footfall/counter/app"
	"footfall/handler/routing"
	"footfall/visit"
	"footfall/web"
)

// noteLoaded returns a handler that records the site whose page loads the counting script, and then calls handle. The page
// /new/APP shows whether the app's pages have loaded the script.
func (s *service) noteLoaded(handle echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if site := app.SiteOfOrigin(origin(c.Request().Header)); site != "" {
			s.Cells.NoteLoaded(site)
		}
		return handle(c)
	}
}

// newSite handles /new, the page where an owner enters a site. newSite adds an app for this site.
func (d *dashboard) newSite(c echo.Context, reader *account.Account) error {
	if !reader.IsOwner() {
		return d.refuse(c, reader)
	}
	site := web.NewSite{Zone: d.Zone, Visitor: app.ByHash}
	if c.Request().Method != http.MethodPost {
		return writePage(c, http.StatusOK, "no-store", web.New(d.pageContext(c), site, nil))
	}
	form, err := d.form(c)
	if err != nil {
		return err
	}
	site = web.NewSite{Host: hostOf(form.Get("host")), Zone: form.Get("zone"), Visitor: form.Get("visitor"),
		Numbers: form.Get("numbers") == "yes", Typed: true}
	shows := app.PublicOff
	if site.Numbers {
		shows = app.PublicAnswers
	}
	name, err := d.addApp(c.Request().Context(), authorOf(reader), site.Host,
		app.Settings{Sites: []string{site.Host}, TZ: &site.Zone, Visitor: &site.Visitor, PublicCounts: &shows})
	if problem := formProblem(err); problem != nil {
		return writePage(c, http.StatusBadRequest, "no-store", web.New(d.pageContext(c), site, problem))
	}
	if err != nil {
		return err
	}
	return d.redirect(c, http.StatusSeeOther, d.root+"/new/"+name)
}

// authorOf returns the text that the change history shows as the author of a reader's changes.
func authorOf(reader *account.Account) string { return "account " + reader.Name }

// adminFor returns the Admin of a cell for a caller. This Admin does not add a site to an app if another app already lists the
// site, unless the caller may also change that app.
func (s *service) adminFor(cell *routing.Cell, who string, mayChange func(app string) bool) *admin.Admin {
	return cell.Admin.WithAuthor(who).WithListedCheck(func(ctx context.Context, site string) (bool, error) {
		return s.Cells.ListsElsewhere(ctx, site, mayChange)
	})
}

// addApp adds an app that is named after its host. If the name is taken, addApp appends a number to the name.
func (s *service) addApp(ctx context.Context, who, host string, settings app.Settings) (name string, err error) {
	called := strings.Trim(strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789", r) {
			return r
		}
		return '-'
	}, strings.TrimPrefix(strings.ToLower(host), "www.")), "-")
	called = cmp.Or(strings.Trim(called[:min(len(called), 50)], "-"), "site")
	for n := 1; n < 100; n++ {
		if name = called; n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		var cell *routing.Cell
		if cell, err = s.Cells.ForNew(ctx, name, ""); err != nil {
			break
		}
		if err = cell.Admin.WithAuthor(who).AddApp(ctx, name, settings); admin.IsBehind(err) {
			err = nil // the app is added; another instance will load it a moment later
		}
		if refused, is := errors.AsType[*visit.Error](err); !is || refused.Field != "name" {
			break
		}
	}
	return name, err
}

// hostOf returns the host in an address that a user typed or pasted.
func hostOf(typed string) string {
	typed = strings.TrimSpace(typed)
	if _, after, is := strings.Cut(typed, "://"); is {
		typed = after
	}
	host, _, _ := strings.Cut(typed, "/")
	return host
}

// waiting handles /new/APP, the page for the time until an app's first visit. It shows the script tag for the app's pages, and
// why a visit was refused. A POST adds a host to the app.
func (d *dashboard) waiting(c echo.Context, reader *account.Account) error {
	name := c.Param("app")
	if !reader.MayLook(name) {
		return d.refuse(c, reader)
	}
	in, reading, shown, err := d.mayLook(c, name)
	if reading == nil {
		return err
	}
	if c.Request().Method == http.MethodPost {
		form, err := d.form(c)
		if err != nil {
			return err
		}
		if !reader.MayChange(name) {
			return d.refuse(c, reader)
		}
		_, err = d.adminFor(in.cell, authorOf(reader), reader.MayChange).AddSites(c.Request().Context(), name, []string{form.Get("host")})
		if err != nil && !admin.IsBehind(err) {
			return err
		}
		return d.redirect(c, http.StatusSeeOther, d.root+"/new/"+name)
	}
	seen := web.Seen{Loaded: reading.Loaded()}
	if refused, is := in.cell.Counter.LastRefused(name); is {
		seen.Refused, seen.Why, seen.At = refused.Site, refused.Why, refused.At
	}
	if (seen.Why == "unlisted" || seen.Why == "origin") && reading.Counts(seen.Refused) {
		if seen.Why = "listed"; seen.Loaded.After(seen.At) {
			seen.Why = "" // a page has loaded the script since, so the refusal is out of date
		}
	}
	return in.show(c, func(ctx context.Context) (web.Page, error) {
		return in.pages.Waiting(ctx, shown, d.origin(c.Request()), seen, reader.MayChange(name))
	})
}
