package handler

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"footfall/account"
	"footfall/admin"
	"footfall/visit"
	"footfall/web"
)

// settingsPage is a settings page during one request. It executes the submitted form, if there is one, and shows the page.
type settingsPage struct {
	*dashboard
	c            echo.Context
	reader       *account.Account
	admin        *admin.Admin    // records the reader as the author of changes
	slot         context.Context //nolint:containedctx // passed by RunLong; only for an upload
	app          string          // the app of the page; "": the service's page
	path         string
	form         url.Values   // the submitted form; nil: no form was submitted, or it was executed
	fault        *visit.Error // error in the submitted form
	isFaultShown bool         // the page shows the error next to its form
	page         web.Settings
	shown        []web.Section // sections that the form or the address requests, such as a visitor's data; shown first
	apps         []string      // apps that the reader may change
	confirmation *web.Section  // asks the reader to confirm the form; shown instead of the page
}

// settings handles /settings and /settings/APP.
func (d *dashboard) settings(c echo.Context, reader *account.Account) error {
	p := &settingsPage{dashboard: d, c: c, reader: reader, app: pathParam(c, "app"), path: d.root + "/settings"}
	if reader == nil || p.app != "" && !reader.MayChange(p.app) {
		return d.refuse(c, reader)
	}
	cell := d.Cells.Home()
	if p.app != "" {
		of, err := d.Cells.Of(p.app)
		if err != nil {
			return err
		}
		cell = of
	}
	p.dashboard, p.admin = d.dashboardFor(cell), d.adminFor(cell, authorOf(reader), reader.MayChange)
	do, show := p.doInService, p.showService
	if p.app != "" {
		p.path += "/" + p.app
		do, show = p.doInApp, p.showApp
	}
	p.page = web.Settings{Place: d.pageContext(c), Path: p.path}
	if from, err := url.Parse(c.Request().Referer()); err == nil && strings.HasPrefix(from.Path, d.root+"/settings") {
		p.page.Said = notices[c.QueryParam("done")] // only after a redirect from a settings form, not for a typed address
	}
	if p.app == "" || !strings.HasPrefix(c.Request().Header.Get(echo.HeaderContentType), echo.MIMEMultipartForm) {
		return p.answer(do, show)
	}
	return runLong(c, p.admin.RunLong, p.app, func(ctx context.Context, a *admin.Admin) error { // the form has files to import
		p.slot, p.admin = ctx, a
		return p.answer(do, show)
	})
}

// answer executes the submitted form and shows the page.
func (p *settingsPage) answer(do func() (string, error), show func() error) error {
	c, d := p.c, p.dashboard
	if c.Request().Method == http.MethodPost {
		form, err := d.formUpTo(c, 4*mostGiven, p.app != "") // only an app's page accepts files, for imports of history
		if err != nil {
			return err
		}
		p.form = form
		done, err := do()
		fault, is := errors.AsType[*visit.Error](err)
		switch {
		case p.confirmation != nil:
			p.page.Title, p.page.Sections = "Are you sure?", []web.Section{*p.confirmation}
			return p.write(http.StatusOK)
		case err == nil && done != "":
			return d.redirect(c, http.StatusSeeOther, done)
		case admin.IsBehind(err):
			p.page.Said, p.form = "The change is saved. One instance of the service has not responded yet: it will apply the change as soon "+
				"as it can.", nil
		case err == nil:
			p.form = nil
		case !is || !slices.Contains([]visit.Kind{visit.Invalid, visit.Forbidden, visit.NotFound}, fault.Kind), fault == errOwners:
			return err
		default:
			p.fault = fault
		}
	}
	if err := show(); err != nil {
		return err
	}
	if p.page.Sections = append(p.shown, p.page.Sections...); p.fault != nil {
		if !p.isFaultShown { // show the error at the top, because its form is no longer on the page
			p.page.Said = p.page.Words.Error(p.fault)
		}
		return p.write(http.StatusBadRequest)
	}
	return p.write(http.StatusOK)
}

func (p *settingsPage) write(status int) error {
	return writePage(p.c, status, "no-store", web.Change(p.page))
}

// notices maps values of the query parameter done to notices, which are shown at the top of the page.
var notices = map[string]string{"yes": "Saved.", "added": "Added.", "removed": "Removed.", "deleted": "Deleted.", "erased": "Erased.",
	"ended": "Ended."}

// donePath returns the address to redirect to after a form, so that reloading the page does not submit the form again.
func (p *settingsPage) donePath(what string) string { return p.path + "?done=" + what }

// newForm returns a form. Its hidden fields do, of and one identify the action, the kind of object or group of settings, and the
// object. If the reader has submitted this form with errors, the returned form contains the errors and the submitted values.
func (p *settingsPage) newForm(button, do, of, one string, fields ...web.Field) web.Form {
	f := web.Form{ID: strings.Trim(strings.ReplaceAll(do+"-"+of, " ", "-"), "-"), Button: button, Fields: fields}
	for _, hidden := range [][2]string{{"do", do}, {"of", of}, {"one", one}} {
		if hidden[1] != "" {
			f.Hidden = append(f.Hidden, hidden)
		}
	}
	if p.form == nil || p.form.Get("do") != do || p.form.Get("of") != of || p.form.Get("one") != one {
		return f
	}
	p.isFaultShown = true
	var rest []string
	for _, part := range p.fault.All() {
		if at := slices.IndexFunc(f.Fields, func(field web.Field) bool { return field.Name == part.Field }); at >= 0 {
			f.Fields[at].Problem = strings.TrimSpace(f.Fields[at].Problem + "\n" + p.page.Words.Text(part.Text))
		} else {
			rest = append(rest, p.page.Words.Error(part))
		}
	}
	f.Problem = strings.Join(rest, "\n")
	for i := range f.Fields {
		field := &f.Fields[i]
		if !p.form.Has(field.Name) && field.Kind != "check" && field.Kind != "checks" {
			continue // keep the value, because a program sent the form without this field
		}
		if p.form.Has("was." + field.Name) {
			field.Was = ptrTo(p.form.Get("was." + field.Name))
		}
		if field.Value = strings.Join(p.form[field.Name], "\n"); field.Kind == "password" {
			field.Value = ""
		}
		for j := range field.Choices {
			field.Choices[j].Chosen = slices.Contains(p.form[field.Name], field.Choices[j].Value)
		}
	}
	return f
}

func ptrTo[T any](value T) *T { return &value }

// confirmed reports whether the reader has confirmed the form. Otherwise it prepares a confirmation page. If word is not empty,
// the reader has to type word on this page.
func (p *settingsPage) confirmed(button, word string, lost ...visit.Text) bool {
	if p.form.Get("sure") == "yes" && (word == "" || p.form.Get("word") == word) {
		return true
	}
	f := web.Form{ID: "sure", Button: button, Weighty: true, Hidden: [][2]string{{"sure", "yes"}}}
	for _, name := range slices.Sorted(maps.Keys(p.form)) {
		if name != "sure" && name != "word" {
			for _, value := range p.form[name] {
				f.Hidden = append(f.Hidden, [2]string{name, value})
			}
		}
	}
	says := make([]string, len(lost))
	for i := range lost {
		says[i] = p.page.Words.Text(lost[i])
	}
	if word != "" {
		f.Fields = []web.Field{{Name: "word", Label: p.translate("Type %s", word), Kind: "text"}}
		if p.form.Get("sure") == "yes" {
			f.Fields[0].Problem = p.translate("This is not %s.", word)
		}
	}
	p.page.Crumbs = append(p.page.Crumbs, [2]string{"Settings", p.path})
	p.confirmation = &web.Section{ID: "asked", Title: "This cannot be undone", Forms: []web.Form{f}}
	p.confirmation.Text = strings.Join(says, p.page.Words.Say("sentences.gap"))
	return false
}

// translate translates a text of this package or of the command line. If there are values, the text is a format as for Sprintf.
func (p *settingsPage) translate(text string, values ...any) string {
	return p.page.Words.Translate(text, values...)
}

// helpFor returns the help text for a flag or an argument, in the page's language.
func (p *settingsPage) helpFor(name string) string { return p.translate(p.service.helpFor(name)) }

// helpFor returns the command line's help for a flag or argument, adapted for pages. It removes the parts in [[…]], which only
// apply to a shell, and the dashes of flags.
func (s *service) helpFor(name string) string {
	text := strings.Join(strings.Fields(forShells.ReplaceAllString(s.Help[name], "")), " ")
	return flagIn.ReplaceAllString(text, "$1")
}

var (
	forShells = regexp.MustCompile(`\[\[.*?\]\]`)
	flagIn    = regexp.MustCompile(`--([a-z])`)
)
