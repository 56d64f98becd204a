package handler

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/handler/routing"
	"footfall/visit"
	"footfall/web"
)

// doInApp executes a form that was submitted on an app's settings page. It returns the address to redirect to, or "" to show the
// page with the result.
func (p *settingsPage) doInApp() (then string, err error) {
	ctx, one := extendDeadline(p.c), strings.TrimSpace(p.form.Get("one"))
	thing := admin.FindObjectKind(p.form.Get("of"))
	switch do := p.form.Get("do"); {
	case do == "set":
		return p.set()
	case do == "add" && thing != nil:
		return p.add(thing)
	case do == "remove" && thing != nil:
		if thing.Lost != "" && !p.confirmed("Remove it", "", visit.Text{Format: thing.Lost}) {
			return "", nil
		}
		return p.donePath("removed"), thing.Remove(ctx, p.admin, p.app, one)
	case do == "test":
		said, err := p.admin.TestWebhook(ctx, p.app, one, p.Log)
		p.page.Said = p.page.Words.Text(said)
		return "", err
	case do == "show":
		return "", p.showVisitor()
	case do == "erase":
		if !p.confirmed("Erase the visitor", "", visit.Textf("The address or id of this visitor is removed from everything that is stored."),
			visit.Textf("Sums and the ranks of other visitors stay unchanged. If the erased visitor returns, they count as a new visitor.")) {
			return "", nil
		}
		_, err = p.admin.EraseVisitor(ctx, p.app, strings.TrimSpace(p.form.Get("visitor")))
		return p.donePath("erased"), err
	case do == "import history":
		return "", p.importHistory()
	case do == "remove history":
		return p.removeHistory(one)
	case do == "delete page":
		return p.deletePage()
	case do == "delete":
		if !p.confirmed("Delete the app", p.app, visit.Textf(
			"Everything that was counted for app %s, its keys, links and notes will be deleted.", p.app)) {
			return "", nil
		}
		if err = p.admin.DeleteApp(ctx, p.app); admin.IsBehind(err) {
			err = nil // the app was deleted, so it has no page that could show this error
		}
		return p.root + "/settings?done=deleted", err
	}
	return "", visit.Errorf(visit.Invalid, "form", "it does not contain an action of this page: reload the page, and try again")
}

// set changes the settings whose submitted values differ from the values in the form when the page was shown. It leaves other
// settings unchanged, so that it does not undo concurrent changes by other users.
func (p *settingsPage) set() (then string, err error) {
	given := admin.InputValues{}
	for _, setting := range app.AllSettings {
		typed := strings.ReplaceAll(p.form.Get(setting.Name), "\r\n", "\n")
		if !p.form.Has(setting.Name) || typed == strings.ReplaceAll(p.form.Get("was."+setting.Name), "\r\n", "\n") {
			continue
		}
		values := []string{strings.TrimSpace(typed)}
		if setting.Many {
			values = slices.DeleteFunc(strings.FieldsFunc(typed, func(r rune) bool { return r == '\n' || r == ',' && setting.Name == "tags" }),
				func(line string) bool { return strings.TrimSpace(line) == "" })
			for i := range values {
				values[i] = strings.TrimSpace(values[i])
			}
		}
		given[setting.Column()] = values
	}
	s, err := settingsOf(given)
	if err != nil {
		return "", err
	}
	lost, err := p.admin.LostBy(p.c.Request().Context(), p.app, s)
	if err != nil || len(lost) > 0 && !p.confirmed("Change it", "", lost...) {
		return "", err
	}
	return p.donePath("yes"), p.admin.SetApp(extendDeadline(p.c), p.app, s)
}

func (p *settingsPage) add(thing *admin.ObjectKind) (then string, err error) {
	given := admin.InputValues{}
	for _, f := range thing.Fields {
		for _, value := range p.form[f.Name] {
			if value = strings.TrimSpace(value); value != "" {
				given[f.Name] = append(given[f.Name], value)
			}
		}
	}
	made, err := addThing(p.c.Request().Context(), p.admin, thing, p.app, p.reader.IsOwner(), given)
	if secret, is := made["secret"].(string); is && (err == nil || admin.IsBehind(err)) {
		p.page.Secret = secret
		switch thing.Name {
		case "links":
			p.page.Said = "Added. Anyone with this link sees the numbers, but nobody's address."
			p.page.Secret = p.origin(p.c.Request()) + "/share/" + secret
		case "webhooks":
			p.page.Said = "Added. The receiver needs this key to check the signature of each call."
		default:
			p.page.Said = "Added. Programs send this key as a header, Authorization: Bearer KEY."
		}
		return "", err
	}
	return p.donePath("added"), err
}

// showVisitor shows a visitor's stored data. The visitor's address or id is in the form, so that no URL contains it.
func (p *settingsPage) showVisitor() error {
	typed := strings.TrimSpace(p.form.Get("visitor"))
	found, err := p.admin.ShowVisitor(extendDeadline(p.c), p.app, typed)
	if err != nil {
		return err
	}
	s := web.Section{ID: "stored", Title: p.translate("Stored data about %s", typed),
		Columns: []string{"Page or site", "Stored as", "Rank", "First day", "Last day"}}
	if ids := len(found.StoredAs); found.Person.IsValid() && len(found.Tags) > 0 {
		s.Text = p.translate("A person. Ids: %d. Tags: %s.", ids, strings.Join(found.Tags, p.page.Words.Say("sentences.comma")))
	} else if found.Person.IsValid() {
		s.Text = p.translate("A person. Ids: %d. No tags.", ids)
	}
	for _, t := range found.Targets {
		s.Rows = append(s.Rows, web.Row{Cells: []string{visit.Shown(t.Uri), t.Ip.String(), fmt.Sprint(t.Rank), visit.DayText(t.FirstDay),
			visit.DayText(t.LastDay)}})
	}
	if len(s.Rows) == 0 && s.Text == "" {
		s.Text = "Nothing."
	} else {
		f := web.Form{ID: "erase", Button: "Erase this visitor …", Hidden: [][2]string{{"do", "erase"}, {"visitor", typed}}}
		s.Forms = []web.Form{f}
	}
	p.shown = append(p.shown, s)
	return nil
}

func (p *settingsPage) deletePage() (then string, err error) {
	uri := strings.TrimSpace(p.form.Get("uri"))
	page, err := p.admin.FindPage(p.c.Request().Context(), p.app, uri)
	if err != nil {
		return "", err
	}
	lost := visit.Textf(
		"The numbers of %s (hot %d, pv %d, uv %d) are moved to the page (deleted) of its site. After that, the page counts from 1 again.",
		visit.Shown(page.URI), page.Hot, page.PV, page.UV)
	if !page.Counted {
		lost = visit.Textf("%s has only numbers from elsewhere, which will be deleted.", visit.Shown(page.URI))
	}
	if !p.confirmed("Delete the page", "", lost) {
		return "", nil
	}
	return p.donePath("deleted"), p.admin.DeletePage(extendDeadline(p.c), p.app, uri)
}

// group is a set of settings that share a form.
type group struct {
	of, title string
	names     []string
}

// groups contain the settings that site owners look for first. moreGroups are under the heading "More". The top of the page has a
// list of the app's hosts or, for an app without hosts, the group unlistedHosts.
var (
	unlistedHosts = group{"unlisted", "Hosts", []string{"site"}}
	groups        = []group{
		{"public", "Public numbers", []string{"public-counts", "public-top", "public-events"}},
		{"goals", "Goals", []string{"goal"}},
		{"tags", "Tags", []string{"tags"}},
	}
	moreGroups = []group{
		{"counting", "Counting", []string{"access", "tz", "bots", "respect-dnt", "ignore", "keep-query"}},
		{"visitors", "Visitors", []string{"visitor", "ipv6-prefix"}},
		{"kept", "Storage", []string{"retain-days", "forget-days", "filters", "titles"}},
		{"limits", "Limits", []string{"max-requests", "max-new-pages"}},
	}
)

func (p *settingsPage) showApp() error {
	ctx := p.c.Request().Context()
	row, err := p.admin.AppNamed(ctx, p.app)
	if err != nil {
		return err
	}
	p.page.Title, p.page.When = p.translate("Settings of %s", p.app), "Changes take effect at once, on every instance."
	if row.HeldUntil != nil && row.HeldUntil.After(time.Now()) {
		p.page.Said = p.translate("The addresses of this app's visitors are being hashed. Until that is done, visits get the status 503. "+
			"If the hashing was interrupted, this lasts until %s, and nothing has changed. Reload this page to check.",
			row.HeldUntil.UTC().Format("15:04 UTC"))
	}
	p.page.Crumbs = [][2]string{{"Settings", p.root + "/settings"}, {p.app, p.root + "/dash/" + p.app}}
	hosts := p.groupSection(unlistedHosts, &row)
	if len(row.Sites) > 0 {
		if hosts, err = p.sectionOf(admin.FindObjectKind("hosts")); err != nil {
			return err
		}
	}
	p.page.Sections = []web.Section{hosts}
	for _, g := range groups {
		p.page.Sections = append(p.page.Sections, p.groupSection(g, &row))
	}
	if p.reader.IsOwner() {
		people, err := p.people()
		if err != nil {
			return err
		}
		p.page.Sections = append(p.page.Sections, people)
	}
	for _, g := range moreGroups {
		p.page.More = append(p.page.More, p.groupSection(g, &row))
	}
	return p.showThings()
}

// groupSection returns a section with a form for the settings of a group.
func (p *settingsPage) groupSection(g group, row *admin.AppRow) web.Section {
	fields := make([]web.Field, len(g.names))
	for i, name := range g.names {
		fields[i] = p.settingField(app.SettingNamed(name), row)
	}
	return web.Section{ID: g.of, Title: g.title, Forms: []web.Form{p.newForm("Save", "set", g.of, "", fields...)}}
}

func (p *settingsPage) settingField(s *app.Setting, row *admin.AppRow) web.Field {
	text := s.Text(row)
	f := web.Field{Name: s.Name, Label: web.Label(s.Name), Help: p.helpFor("app --" + s.Name), Value: text, Was: &text, Kind: "text",
		Complete: "off"}
	if s.Many {
		f.Kind, f.Help = "lines", f.Help+p.page.Words.Say("sentences.gap")+p.translate("One per line.")
	}
	if s.Name == "tz" {
		f.Offered = web.Zones()
	}
	if s.Choices != nil {
		f.Kind = "radio"
		f.Help, f.Choices = p.describeChoices(f.Help, s.Choices)
		for i := range f.Choices {
			f.Choices[i].Chosen = f.Choices[i].Value == text
		}
	}
	return f
}

// describeChoices splits a help text like "Who may count. open: anyone. key: callers with a key." into its beginning and a text
// for each choice (open and key). If the help text does not explain the choices, they are true and false.
func (p *settingsPage) describeChoices(help string, words []string) (beginning string, choices []web.Choice) {
	explained := regexp.MustCompile(`(?:^| )(`+strings.Join(words, "|")+`): `).FindAllStringSubmatchIndex(help, -1)
	if explained == nil {
		return help, []web.Choice{{Value: "true", Shown: p.translate("yes")}, {Value: "false", Shown: p.translate("no")}}
	}
	for i, at := range explained {
		end := len(help)
		if i+1 < len(explained) {
			end = explained[i+1][0]
		}
		choices = append(choices, web.Choice{Value: help[at[2]:at[3]], Shown: capitalize(help[at[1]:end])})
	}
	return help[:explained[0][0]], choices
}

func capitalize(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// showThings shows the app's keys, links, notes and so on (admin.ObjectKinds), and the forms for other actions.
func (p *settingsPage) showThings() error {
	for i := range admin.ObjectKinds {
		if thing := &admin.ObjectKinds[i]; thing.Name != "hosts" {
			s, err := p.sectionOf(thing)
			if err != nil {
				return err
			}
			p.page.More = append(p.page.More, s)
		}
	}
	history, err := p.history()
	if err != nil {
		return err
	}
	p.page.More = append(p.page.More, history,
		web.Section{ID: "visitor", Title: "A visitor", Forms: []web.Form{p.newForm("Show stored data", "show", "", "",
			web.Field{Name: "visitor", Label: "Address or id", Help: p.helpFor("visitor <visitor>"), Kind: "text"})}},
		web.Section{ID: "delete", Title: "Delete", Forms: []web.Form{
			p.newForm("Delete a page …", "delete page", "", "",
				web.Field{Name: "uri", Label: "Page", Help: p.helpFor("page delete <uri>"), Kind: "text"}),
			p.newForm("Delete the app …", "delete", "", "")}})
	changes, err := p.changes(p.app, 20)
	p.page.More = append(p.page.More, changes)
	return err
}

// people returns the section with the accounts that may see the app. Only owners see this section.
func (p *settingsPage) people() (s web.Section, err error) {
	list, err := p.Accounts.List(p.c.Request().Context())
	s = web.Section{ID: "people", Title: "People", Columns: []string{"Name", "Permissions"},
		Lead: [2]string{p.root + "/settings?invite=" + p.app + "#accounts", p.translate("Invite someone to view %s", p.app)}}
	for _, e := range list {
		may := rightText(e.Apps[p.app])
		if e.Owner { // an owner may still have a right for the app, from before
			may = "everything"
		}
		if e.Owner || e.Apps[p.app] != "" {
			s.Rows = append(s.Rows, web.Row{Link: fmt.Sprintf("%s/settings?account=%d#account", p.root, e.ID), Cells: []string{orNumber(e), may}})
		}
	}
	return s, err
}

// changes returns the section with the last changes to the app that the parameter of names. If of is "", the section contains the
// last changes in all available cells.
func (p *settingsPage) changes(of string, most int32) (s web.Section, err error) {
	ctx := p.c.Request().Context()
	s = web.Section{ID: "changes", Title: "Changes", Columns: []string{"When", "Who", "App", "Item", "Before", "After"}}
	var list []admin.ChangesListRow
	if here, _ := p.Cells.All(); of == "" && len(here) > 1 {
		lists := make([][]admin.ChangesListRow, len(here))
		var away []string
		away, err = p.forEachCell(ctx, here, func(ctx context.Context, i int, cell *routing.Cell) (err error) {
			lists[i], err = cell.Admin.Changes(ctx, "", most)
			return err
		})
		list = slices.Concat(lists...)
		slices.SortStableFunc(list, func(a, b admin.ChangesListRow) int { return b.At.Compare(a.At) })
		list = list[:min(len(list), int(most))]
		if len(away) > 0 {
			s.Text = p.page.Words.Say("home.away", "cells", strings.Join(away, p.page.Words.Say("sentences.comma")))
		}
	} else if of == "" {
		list, err = p.admin.Changes(ctx, of, most)
	} else {
		list, err = p.admin.ChangesOf(ctx, of, most)
	}
	for _, ch := range list {
		app := "–"
		if ch.App != nil {
			app = *ch.App
		}
		s.Rows = append(s.Rows, web.Row{Cells: []string{cellOf(ch.At), ch.Who, app, ch.What, cmp.Or(ch.Was, "–"), cmp.Or(ch.IsNow, "–")}})
	}
	return s, err
}
