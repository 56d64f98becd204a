package web

import (
	"slices"
	"strings"

	"footfall/web/words"
)

// Settings is a page of sections, each with a table and forms.
type Settings struct {
	Place
	Title    string
	Crumbs   [][2]string // breadcrumbs: names and links
	Path     string      // address to which browsers send the forms
	When     string      // introduction below the title
	Said     string      // message after a form was submitted, or ""
	Secret   string      // a key or link that is shown only once, or ""
	Sections []Section
	More     []Section // folded, unless one of them is Open or has a form with an error
}

// Section is a part of a settings page.
type Section struct {
	ID, Title, Text string
	Columns         []string
	Rows            []Row
	Forms           []Form
	Pre             string    // preformatted text
	Lead            [2]string // address and text of a link to a related page; both "" if there is no link
	Open            bool      // the section must be visible, because one of its forms is already filled in
}

// Row is a row of a table, with the forms for its actions.
type Row struct {
	Cells []string
	Link  string // link of the first cell, or ""
	Forms []Form
}

// Form is a form on the page. Browsers send it to the address Settings.Path.
type Form struct {
	ID      string // unique on the page
	Hidden  [][2]string
	Fields  []Field
	Button  string
	Of      string // the object that the button changes, for screen readers
	Problem string
	Folded  string // text of the line that unfolds the form; "" if the form is always visible
	Weighty bool   // the action cannot be undone
}

// Field is a field of a form. Problem is the error in its submitted value.
type Field struct {
	Name, Label, Help, Value, Problem string
	Kind                              string // text, lines, select, beside (inline select), file, radio, checks, check, password
	Choices                           []Choice
	Offered                           []string // suggestions for a text
	Was                               *string  // value before editing; sent with the form, so that handlers find changed fields
	Optional                          bool
	Complete                          string // value of the HTML attribute autocomplete
}

// Choice is a value that the user can choose in a field.
type Choice struct {
	Value  string
	Shown  string // text to show; "" to show Value
	Chosen bool
}

// labels contains the labels of fields whose names are unclear without context. The key is the name.
var labels = map[string]string{
	"tz": "Time zone", "ipv6-prefix": "IPv6 prefix", "respect-dnt": "Respect Do Not Track", "uri": "Page", "url": "Address", "site": "Host",
	"access": "Who may count", "visitor": "How visitors are distinguished", "public-counts": "Public numbers",
	"public-top":    "Public lists of pages",
	"public-events": "Public events", "retain-days": "Keep visits for (days)",
	"forget-days": "Forget visitors after (days)", "keep-query": "Query parameters that distinguish pages", "ignore": "Do not count",
	"max-requests": "Requests per minute", "max-new-pages": "New pages per day", "bots": "Crawlers", "goal": "Goals", "scope": "Allows",
	"offsets": "Numbers from elsewhere", "used": "Last used", "answers": "Responses", "made": "Created", "old": "Current password", "one": "Name",
	"private": "Allow a private address", "hot": "Page views (hot)", "pv": "Visits (pv)", "uv": "Visitors (uv)",
}

// Label returns the English label of a field or a column with this name.
func Label(name string) string {
	if label := labels[name]; label != "" {
		return label
	}
	name = strings.NewReplacer("-", " ", "_", " ").Replace(name)
	return strings.ToUpper(name[:1]) + name[1:]
}

type settingsPage struct {
	frame
	S Settings
}

// Change makes a settings page.
func Change(s Settings) Page {
	s.speak(s.words())
	page := settingsPage{frame: frame{Place: s.Place, Title: s.Title, Home: s.Root + "/"}, S: s}
	for _, c := range s.Crumbs {
		page.Crumbs = append(page.Crumbs, crumb{Name: c[0], Link: c[1]})
	}
	return render("settings", page)
}

// speak translates the texts that handlers write in English, including the command line's help. These are titles, labels, help,
// buttons and errors. It does not translate text that users typed.
func (s *Settings) speak(l *words.Language) {
	if l == words.English() {
		return
	}
	say := func(texts ...*string) {
		for _, text := range texts {
			*text = l.Translate(*text)
		}
	}
	say(&s.Title, &s.When, &s.Said)
	for i := range s.Crumbs {
		say(&s.Crumbs[i][0])
	}
	for _, section := range s.all() {
		say(&section.Title, &section.Text, &section.Lead[1])
		for _, row := range section.Rows {
			for j := range row.Cells {
				if slices.Contains(translatedColumns, section.Columns[j]) {
					say(&row.Cells[j])
				}
			}
			speakForms(row.Forms, say)
		}
		section.Columns = slices.Clone(section.Columns)
		for j := range section.Columns {
			say(&section.Columns[j])
		}
		speakForms(section.Forms, say)
	}
}

func (s *Settings) all() (all []*Section) {
	for _, sections := range [][]Section{s.Sections, s.More} {
		for i := range sections {
			all = append(all, &sections[i])
		}
	}
	return all
}

// MoreOpen reports whether the sections in More must be unfolded: one of them is Open, or a form has an error.
func (s Settings) MoreOpen() bool {
	return slices.ContainsFunc(s.More, func(section Section) bool {
		return section.Open || slices.ContainsFunc(section.Forms, func(f Form) bool { return f.Problem != "" || f.Wrong() })
	})
}

// translatedColumns lists the columns of tables whose cells are translated.
var translatedColumns = []string{"Permissions", "Browser", "Counted by", Label("site"), Label("private")}

func speakForms(forms []Form, say func(...*string)) {
	for i := range forms {
		f := &forms[i]
		say(&f.Button, &f.Of, &f.Problem, &f.Folded)
		for j := range f.Fields {
			field := &f.Fields[j]
			say(&field.Help, &field.Problem)
			if field.Kind != "beside" { // for this kind, the label is the name of an app
				say(&field.Label)
				continue
			}
			for k := range field.Choices {
				say(&field.Choices[k].Shown)
			}
		}
	}
}

// Wrong reports whether a field of the form has an error.
func (f Form) Wrong() bool {
	for _, field := range f.Fields {
		if field.Problem != "" {
			return true
		}
	}
	return false
}

// HasFile reports whether the form has a file field.
func (f Form) HasFile() bool {
	return slices.ContainsFunc(f.Fields, func(field Field) bool { return field.Kind == "file" })
}

// Rows returns the height of the field's text area, in lines.
func (f Field) Rows() int { return min(strings.Count(f.Value, "\n")+2, 12) }

// dict makes a map from pairs of a name and a value. Templates pass such a map to other templates.
func dict(named ...any) map[string]any {
	all := map[string]any{}
	for i := 0; i+1 < len(named); i += 2 {
		all[named[i].(string)] = named[i+1]
	}
	return all
}
