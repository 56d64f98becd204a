package handler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/visit"
	"footfall/web"
)

// mostListed is the maximum number of rows in a table of keys, links, notes and so on (admin.ObjectKinds).
const mostListed = 200

// sectionOf returns a page's section about one kind of object, such as an app's keys: a table of them, and a form to add one.
func (p *settingsPage) sectionOf(thing *admin.ObjectKind) (s web.Section, err error) {
	rows, err := thing.List(p.c.Request().Context(), p.admin, p.app)
	s = web.Section{ID: thing.Name, Title: web.Label(thing.Name), Text: p.helpFor(sectionHelp[thing.Name])}
	for _, column := range thing.Columns {
		s.Columns = append(s.Columns, web.Label(column))
	}
	if len(rows) > mostListed {
		s.Text += p.page.Words.Say("sentences.gap") + p.translate("The first %d of %d are listed.", mostListed, len(rows))
		rows = rows[:mostListed]
	}
	for _, row := range rows {
		one := fmt.Sprint(row[0])
		r := web.Row{}
		for _, value := range row {
			r.Cells = append(r.Cells, cellOf(value))
		}
		if at := slices.Index(thing.Columns, "revoked"); at < 0 || row[at] == (*time.Time)(nil) {
			button := "Remove"
			if thing.Lost != "" {
				button = "Remove …"
			}
			f := p.newForm(button, "remove", thing.Name, one)
			f.Of = one
			r.Forms = append(r.Forms, f)
		}
		if thing.Name == "webhooks" {
			f := p.newForm("Send a test call", "test", thing.Name, one)
			f.Of = p.translate("to %s", one)
			r.Forms = append(r.Forms, f)
		}
		s.Rows = append(s.Rows, r)
	}
	var fields []web.Field
	for _, f := range thing.Fields {
		if onlyForAllApps[f.Name] == "true" && !p.reader.IsOwner() {
			continue
		}
		field := web.Field{Name: f.Name, Label: web.Label(f.Name), Help: p.helpFor(f.Help), Kind: "text", Optional: f.Optional}
		if thing.Name == "notes" { // the dashboard's link to this form contains values for the fields
			field.Value = p.c.QueryParam(f.Name)
		}
		for _, word := range f.Choices {
			if admins := word == string(app.ScopeAdmin); admins && p.reader.IsOwner() || !admins && p.app != "" {
				field.Kind, field.Choices = "checks", append(field.Choices, web.Choice{Value: word})
			}
		}
		if f.Is {
			field.Kind = "check"
		}
		fields = append(fields, field)
	}
	f := p.newForm("Add", "add", thing.Name, "", fields...)
	f.Folded = "Add a " + thing.One
	if p.c.QueryParam("day") != "" && thing.Name == "notes" {
		f.Folded, s.Open = "", true
	}
	if thing.One == "offset" {
		f.Folded = "Set the numbers of a page or host"
	}
	s.Forms = []web.Form{f}
	return s, err
}

// sectionHelp maps the sections of an app's page to the names of their help texts on the command line.
var sectionHelp = map[string]string{"hosts": "app --site", "keys": "app key", "links": "app share", "notes": "app note",
	"webhooks": "app webhook",
	"offsets":  "offset"}

// cellOf formats a value for a table on a page.
func cellOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "–"
	case time.Time:
		return v.UTC().Format("2006-01-02 15:04 UTC")
	case *time.Time:
		if v == nil {
			return "–"
		}
		return cellOf(*v)
	case *string:
		if v == nil {
			return "all"
		}
		return visit.Shown(*v)
	case []string:
		return cmp.Or(strings.Join(v, ", "), "–")
	case bool:
		return map[bool]string{true: "yes", false: "no"}[v]
	case string:
		return cmp.Or(visit.Shown(v), "–")
	}
	return fmt.Sprint(value)
}
