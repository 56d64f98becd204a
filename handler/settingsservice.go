package handler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"footfall/account"
	"footfall/admin"
	"footfall/handler/routing"
	"footfall/visit"
	"footfall/web"
	"footfall/web/words"
)

// ownActions are the actions on the service's settings page that all users may take for their own account. Other actions require
// an owner.
var ownActions = []string{"password", "end", "end others", "language"}

// doInService executes a form that was submitted on the service's settings page. It returns the address to redirect to, or "" to
// show the page with the result.
func (p *settingsPage) doInService() (then string, err error) {
	ctx, do := p.c.Request().Context(), p.form.Get("do")
	if !p.reader.IsOwner() && !slices.Contains(ownActions, do) {
		return "", errOwners
	}
	one, _ := strconv.ParseInt(p.form.Get("one"), 10, 32)
	id := int32(one) //nolint:gosec // parsed with 32 bits
	accounts := p.Accounts.WithAuthor(p.admin.Author())
	if slices.Contains([]string{"link", "rights", "remove account"}, do) {
		if _, err = accounts.Find(ctx, "#"+strconv.Itoa(int(id))); err != nil {
			return "", err
		}
	}
	switch keys := admin.FindObjectKind("keys"); do {
	case "password":
		return p.setPassword()
	case "end":
		return p.donePath("ended"), accounts.EndSession(ctx, p.reader.ID, id)
	case "language":
		return p.setLanguage(accounts)
	case "end others":
		return p.donePath("ended"), accounts.EndSessions(ctx, p.reader.ID, p.reader.Session)
	case "add":
		return p.add(keys)
	case "remove":
		if !p.confirmed("Remove it", "", visit.Text{Format: keys.Lost}) {
			return "", nil
		}
		return p.donePath("removed"), p.admin.RevokeKey(ctx, "", p.form.Get("one"))
	case "invite":
		rights := p.rights()
		if p.form.Get("owner") != "true" && len(rights.Apps) == 0 {
			return "", visit.Errorf(visit.Invalid, "owner",
				"an account without an app sees nothing: choose an app below, or make it an owner")
		}
		_, token, err := accounts.Add(ctx, strings.TrimSpace(p.form.Get("name")), rights)
		return "", p.tellLink(token, err)
	case "link":
		token, err := accounts.NewLink(ctx, id)
		return "", p.tellLink(token, err)
	case "rights":
		return p.donePath("yes"), accounts.Set(ctx, id, p.rights())
	case "remove account":
		if !p.confirmed("Remove the account", "", visit.Textf("This account is signed out everywhere and can no longer sign in.")) {
			return "", nil
		}
		return p.donePath("removed"), accounts.Remove(ctx, id)
	}
	return "", visit.Errorf(visit.Invalid, "form", "it does not contain an action of this page: reload the page, and try again")
}

var errOwners = visit.Errorf(visit.Forbidden, "", "only an owner of this service can do this")

func (p *settingsPage) setPassword() (then string, err error) {
	session := ""
	if p.reader.Session != 0 {
		session = fmt.Sprint("session ", p.reader.Session)
	}
	accounts, err := p.try(p.c, p.reader.Name, session)
	if err == nil {
		session, err = accounts.SetPassword(p.c.Request().Context(), p.reader, p.form.Get("old"), p.form.Get("password"),
			browserOf(p.c.Request()))
	}
	if err == nil {
		err = p.letIn(p.c, session)
	}
	return p.donePath("yes"), err
}

// tellLink shows the new link for choosing an account's password. The link cannot be shown again, because only its hash is
// stored.
func (p *settingsPage) tellLink(token string, err error) error {
	if err == nil {
		p.page.Said = p.translate(
			"The first person to open this link chooses the password. It is valid for %d days.", int(account.LinkLifetime.Hours()/24))
		p.page.Secret = p.startLink(p.c, token)
	}
	return err
}

// ofApp is the prefix of form fields with an account's right to an app. The app's name follows the prefix.
const ofApp = "app."

// rights reads an account's rights from a form. It leaves out rights that the user did not change in the form, so that they keep
// their current value.
func (p *settingsPage) rights() account.Rights {
	r := account.Rights{Apps: map[string]account.Right{}}
	if owner := p.form.Get("owner") == "true"; strconv.FormatBool(owner) != p.form.Get("was.owner") {
		r.Owner = &owner
	}
	for name := range p.form {
		if app, is := strings.CutPrefix(name, ofApp); is {
			if right := p.form.Get(name); right != p.form.Get("was."+name) {
				r.Apps[app] = account.Right(right)
			}
		}
	}
	return r
}

// rightText returns the English text for a right on pages.
func rightText(right account.Right) string {
	if right == account.Look {
		return "view" // "look" is only the value in forms, flags and the API
	}
	return string(right)
}

// rightsFields returns the form fields that the method rights reads: owner, and the account's right to each app. offered is the
// name of an app for which the right to view is preselected.
func (p *settingsPage) rightsFields(e account.Entry, offered string) []web.Field {
	owner := strconv.FormatBool(e.Owner)
	fields := []web.Field{{Name: "owner", Label: "Owner", Kind: "check", Value: owner, Was: &owner,
		Help: "An owner may do everything, for all apps and accounts. For an account that is not an owner, choose a right for each app:"}}
	for _, name := range p.apps {
		has := cmp.Or(e.Apps[name], account.None)
		f := web.Field{Name: ofApp + name, Label: name, Kind: "beside", Was: ptrTo(string(has))}
		if name == offered {
			has = account.Look
		}
		for _, right := range []account.Right{account.None, account.Look, account.Change} {
			f.Choices = append(f.Choices, web.Choice{Value: string(right), Shown: rightText(right), Chosen: right == has})
		}
		fields = append(fields, f)
	}
	return fields
}

// showService fills the service's settings page. Owners see everything. Other users see their own settings and apps.
func (p *settingsPage) showService() error {
	ctx := p.c.Request().Context()
	p.page.Title = "Settings"
	all, away, err := p.appsOfAll(ctx)
	if err != nil {
		return err
	}
	apps := web.Section{ID: "apps", Title: "Apps", Columns: []string{"App", "Hosts", "Time zone"}}
	if len(away) > 0 {
		apps.Text = p.page.Words.Say("home.away", "cells", strings.Join(away, p.page.Words.Say("sentences.comma")))
	}
	for i := range all {
		if row := &all[i]; p.reader.MayChange(row.Name) && row.DeletedAt == nil {
			p.apps = append(p.apps, row.Name)
			apps.Rows = append(apps.Rows, web.Row{Link: p.root + "/settings/" + row.Name, Cells: []string{row.Name, cellOf(row.Sites), row.Tz}})
		}
	}
	steps := []func(context.Context) error{p.showOwn}
	if p.reader.IsOwner() {
		apps.Lead = [2]string{p.root + "/new", "Add a site"}
		steps = []func(context.Context) error{p.showAccounts, p.showOwn, p.showState}
	}
	if p.reader.IsOwner() || apps.Rows != nil {
		p.page.Sections = append(p.page.Sections, apps)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *settingsPage) showAccounts(ctx context.Context) error {
	list, err := p.Accounts.List(ctx)
	if err != nil {
		return err
	}
	s := web.Section{ID: "accounts", Title: "Accounts", Columns: []string{"Name", "Permissions", "Last used", "Link valid until"}}
	for _, e := range list {
		one := strconv.Itoa(int(e.ID))
		may := "everything"
		if !e.Owner {
			may = p.mayOf(e)
		}
		link, remove := p.newForm("New link", "link", "", one), p.newForm("Remove …", "remove account", "", one)
		link.Of, remove.Of = p.translate("for %s", e.Name), e.Name
		s.Rows = append(s.Rows, web.Row{Link: p.path + "?account=" + one + "#account", Forms: []web.Form{link, remove},
			Cells: []string{orNumber(e), may, cellOf(e.Used), cellOf(e.LinkUntil)}})
		if p.c.QueryParam("account") == one || p.form.Get("do") == "rights" && p.form.Get("one") == one {
			p.shown = append(p.shown, web.Section{ID: "account", Title: p.translate("Permissions of %s", orNumber(e)),
				Forms: []web.Form{p.newForm("Save", "rights", "", one, p.rightsFields(e, "")...)}})
		}
	}
	name := web.Field{Name: "name", Label: "Name", Kind: "text", Optional: true,
		Help: "An email address, or any word, to sign in with. If left empty, the person who follows the link chooses it."}
	at := p.c.QueryParam("invite")
	invite := p.newForm("Make a link", "invite", "", "", append([]web.Field{name}, p.rightsFields(account.Entry{}, at)...)...)
	if at == "" {
		invite.Folded = "Invite someone"
	}
	s.Forms = []web.Form{invite}
	p.page.Sections = append(p.page.Sections, s)
	return nil
}

// mayOf describes the rights of an account that is not an owner. For more than five apps, it returns numbers of apps, not names.
func (p *settingsPage) mayOf(e account.Entry) string {
	looks, changes := e.AppsWith(account.Look), e.AppsWith(account.Change)
	if len(e.Apps) > 5 {
		return p.translate("view %d apps, change %d", len(e.Apps), len(changes))
	}
	comma := p.page.Words.Say("sentences.comma")
	look, change := strings.Join(looks, comma), strings.Join(changes, comma)
	switch {
	case look != "" && change != "":
		return p.translate("view %s; change %s", look, change)
	case look != "":
		return p.translate("view %s", look)
	case change != "":
		return p.translate("change %s", change)
	}
	return p.translate("nothing")
}

func orNumber(e account.Entry) string {
	if e.Name == "" {
		return fmt.Sprintf("#%d", e.ID)
	}
	return e.Name
}

// browserLanguage is the value of the choice to use the browser's language.
const browserLanguage = "browser"

func (p *settingsPage) setLanguage(accounts *account.Accounts) (then string, err error) {
	chosen := p.form.Get("language")
	if l := words.FindLanguage(chosen); chosen != browserLanguage && l == nil {
		return "", visit.Errorf(visit.Invalid, "language", "%.64q is not a language of these pages", chosen)
	} else if l == nil {
		chosen = ""
	}
	return p.path + "?done=yes", accounts.SetLanguage(p.c.Request().Context(), p.reader.ID, chosen)
}

func (p *settingsPage) languageSection() web.Section {
	f := web.Field{Name: "language", Label: "Language", Kind: "select",
		Help:    "For all pages that you see here. An address with lang= takes precedence.",
		Choices: []web.Choice{{Value: browserLanguage, Shown: p.translate("As in the browser"), Chosen: p.reader.Language == ""}}}
	for _, l := range words.All() {
		f.Choices = append(f.Choices, web.Choice{Value: l.Tag, Shown: l.Name, Chosen: p.reader.Language == l.Tag})
	}
	return web.Section{ID: "language", Title: "Your language", Forms: []web.Form{p.newForm("Save", "language", "", "", f)}}
}

// showOwn shows the reader's own settings: the language, the password and the sessions. It shows only the language to a reader
// whom a proxy has signed in, because this reader has no session.
func (p *settingsPage) showOwn(ctx context.Context) error {
	p.page.Sections = append(p.page.Sections, p.languageSection())
	if p.reader.Session == 0 { // the reader is signed in by a proxy
		return nil
	}
	sessions, err := p.Accounts.Sessions(ctx, p.reader.ID)
	if err != nil {
		return err
	}
	s := web.Section{ID: "sessions", Title: "Where you are signed in", Columns: []string{"Browser", "Since", "Last used"}}
	for _, one := range sessions {
		browser := p.translate(one.Browser) // translates a text like "no browser"; names of browsers stay unchanged
		row := web.Row{Cells: []string{browser, cellOf(one.CreatedAt), cellOf(one.UsedAt)}}
		if one.ID == p.reader.Session {
			row.Cells[0] = p.translate("%s (this one)", browser)
		} else {
			row.Forms = []web.Form{p.newForm("End", "end", "", strconv.Itoa(int(one.ID)))}
			row.Forms[0].Of = browser
		}
		s.Rows = append(s.Rows, row)
	}
	if len(sessions) > 1 {
		s.Forms = []web.Form{p.newForm("Sign out everywhere else", "end others", "", "")}
	}
	password := p.newForm("Change it", "password", "", "",
		web.Field{Name: "old", Label: "Current password", Kind: "password", Complete: "current-password"},
		web.Field{Name: "password", Label: "New password", Kind: "password", Complete: "new-password",
			Help: "At least 10 characters. All other sessions will end."})
	p.page.Sections = append(p.page.Sections, web.Section{ID: "password", Title: "Your password", Forms: []web.Form{password}}, s)
	return nil
}

// showState shows the keys for all apps, the last changes, and the status of each database.
func (p *settingsPage) showState(ctx context.Context) error {
	keys, err := p.sectionOf(admin.FindObjectKind("keys"))
	if err != nil {
		return err
	}
	keys.Title, keys.Text = "Keys for all apps", p.helpFor("key")
	changes, err := p.changes("", 50)
	if err != nil {
		return err
	}
	p.page.Sections = append(p.page.Sections, keys, changes)
	here, _ := p.Cells.All()
	here = slices.DeleteFunc(here, func(cell *routing.Cell) bool { return cell.Status == nil })
	states := make([]string, len(here))
	if _, err := p.forEachCell(ctx, here, func(ctx context.Context, i int, cell *routing.Cell) (err error) {
		states[i], err = cell.Status(ctx)
		return err
	}); err != nil && ctx.Err() == nil {
		return errors.Join(errors.New("read the state"), err)
	}
	for i, cell := range here {
		s := web.Section{ID: "state", Title: "State", Text: "As shown by footfall status.", Pre: states[i]}
		if cell.Name != "" {
			s.ID, s.Title = "state-"+cell.Name, p.translate("State: %s", cell.Name)
		}
		p.page.Sections = append(p.page.Sections, s)
	}
	return nil
}
