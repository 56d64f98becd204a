package web

import (
	"slices"
	"strings"

	"footfall/web/words"
)

// Settings is a page on which something is changed: sections, each with a table and forms.
type Settings struct {
	Place
	Title    string
	Crumbs   [][2]string // the way to it: names and links
	Path     string      // where its forms are sent
	When     string      // what the page is about
	Said     string      // what was done; "": nothing
	Secret   string      // told this once; "": nothing
	Sections []Section
}

// Section is a part of such a page.
type Section struct {
	ID, Title, Text string
	Columns         []string
	Rows            []Row
	Forms           []Form
	Pre             string    // is shown as it is
	Lead            [2]string // a link to where more is done, and its words; "": none is here
}

// Row is a line of a table, with what can be done to it.
type Row struct {
	Cells []string
	Link  string // where the first leads; "": nowhere
	Forms []Form
}

// Form is sent to the page that it stands in.
type Form struct {
	ID      string // tells it from others of the page
	Hidden  [][2]string
	Fields  []Field
	Button  string
	Of      string // for those who hear the button alone: what it is about
	Problem string
	Folded  string // the line that opens it; "": it stands open
	Weighty bool   // it cannot be undone
}

// Field is a field of a form. Problem is with what was typed.
type Field struct {
	Name, Label, Help, Value, Problem string
	Kind                              string // text, lines, select, beside (a select beside its label), file, checks, check, password
	Choices                           []Choice
	Offered                           []string // for a text
	Was                               *string  // sent, too: the value that the page has shown
	Optional                          bool
	Complete                          string // what browsers may fill in
}

// Choice is one of some values.
type Choice struct {
	Value  string
	Shown  string // "": the value
	Chosen bool
}

// labels are names of fields that do not say enough by themselves.
var labels = map[string]string{
	"tz": "Time zone", "ipv6-prefix": "IPv6 prefix", "respect-dnt": "Respect Do Not Track", "uri": "Page", "url": "Address", "site": "Host",
	"access": "Who may count", "visitor": "What tells visitors apart", "public-counts": "Public numbers",
	"public-top":    "Public lists of pages",
	"public-events": "Public events", "retain-days": "Keep visits for (days)",
	"forget-days": "Forget visitors after (days)", "keep-query": "Query parameters that make pages", "ignore": "Do not count",
	"max-requests": "Requests a minute", "max-new-pages": "New pages a day", "bots": "Crawlers", "goal": "Goals", "scope": "What it opens",
	"offsets": "Numbers from elsewhere", "used": "Last used", "old": "Present password", "one": "Name",
	"private": "It may have a private address", "hot": "Page views (hot)", "pv": "Visits (pv)", "uv": "Visitors (uv)",
}

// Label is what people read for the name of a field or a column.
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

// Change makes the page.
func Change(s Settings) Page {
	s.speak(s.words())
	page := settingsPage{frame: frame{Place: s.Place, Title: s.Title, Home: s.Root + "/"}, S: s}
	for _, c := range s.Crumbs {
		page.Crumbs = append(page.Crumbs, crumb{Name: c[0], Link: c[1]})
	}
	return render("settings", page)
}

// speak says in a language what handlers say in English, with the words of the shell: labels, help, buttons
// and faults. What people have typed stays.
func (s *Settings) speak(l *words.Language) {
	if l == words.English() {
		return
	}
	say := func(texts ...*string) {
		for _, text := range texts {
			*text = l.Of(*text)
		}
	}
	say(&s.Title, &s.When, &s.Said)
	for i := range s.Crumbs {
		say(&s.Crumbs[i][0])
	}
	for i := range s.Sections {
		section := &s.Sections[i]
		say(&section.Title, &section.Text, &section.Lead[1])
		for _, row := range section.Rows {
			for j := range row.Cells {
				if slices.Contains(ofWords, section.Columns[j]) {
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

// ofWords are columns whose cells are words.
var ofWords = []string{"May", "Browser", Label("site"), Label("private")}

func speakForms(forms []Form, say func(...*string)) {
	for i := range forms {
		f := &forms[i]
		say(&f.Button, &f.Of, &f.Problem, &f.Folded)
		for j := range f.Fields {
			field := &f.Fields[j]
			say(&field.Help, &field.Problem)
			if field.Kind != "beside" { // which has the name of an app
				say(&field.Label)
				continue
			}
			for k := range field.Choices {
				field.Choices[k].Shown = field.Choices[k].Value
				say(&field.Choices[k].Shown)
			}
		}
	}
}

// Wrong reports whether something is wrong in a field.
func (f Form) Wrong() bool {
	for _, field := range f.Fields {
		if field.Problem != "" {
			return true
		}
	}
	return false
}

// HasFile reports whether a file is sent with a form.
func (f Form) HasFile() bool {
	return slices.ContainsFunc(f.Fields, func(field Field) bool { return field.Kind == "file" })
}

// Rows is how many lines a field shows.
func (f Field) Rows() int { return min(strings.Count(f.Value, "\n")+2, 12) }

// dict is what a template hands to another by names.
func dict(named ...any) map[string]any {
	all := map[string]any{}
	for i := 0; i+1 < len(named); i += 2 {
		all[named[i].(string)] = named[i+1]
	}
	return all
}
