// Package words has what pages say, in each language that people read: texts, numbers, days, and
// names of countries and languages. The texts are in files, one a language, of which English is one;
// texts that the shell and the API have as well are made elsewhere, in English, which is their key here.
package words

import (
	"embed"
	"fmt"
	"html"
	"html/template"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"footfall/visit"
)

//go:embed *.toml
var files embed.FS

// Language is one in which pages are written.
type Language struct {
	Tag  string // as HTML says it
	Name string // in itself

	texts  map[string]string
	plural func(n int64, whole bool) string
	names  [3][]string // of days of the week and months, as the file has them
	group  string      // between thousands
	few    int         // numbers of so few digits are written without
}

// tags are those of all languages, the usual one first.
var tags = []string{"en", "zh-CN", "ko", "ja", "de", "fr", "es"}

var all = sync.OnceValue(func() (made []*Language) {
	for _, tag := range tags {
		text, err := files.ReadFile(tag + ".toml")
		if err != nil {
			panic(err)
		}
		made = append(made, newLanguage(tag, string(text)))
	}
	return made
})

func newLanguage(tag, file string) *Language {
	texts, err := parse(file)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", tag, err)) // as no test lets pass
	}
	base, _, _ := strings.Cut(tag, "-")
	l := &Language{Tag: tag, Name: texts["language.name"], texts: texts, plural: plurals[base]}
	for i, name := range []string{"weekdays", "months", "short-months"} {
		l.names[i] = strings.Split(texts["days."+name], " ")
	}
	l.group = texts["numbers.group"]
	l.few, _ = strconv.Atoi(texts["numbers.digits-without-group"])
	return l
}

// All are the languages that are offered.
func All() []*Language { return all() }

// English is the one that all know of.
func English() *Language { return all()[0] }

// Named is the language of a tag; nil: there is none.
func Named(tag string) *Language {
	for _, l := range all() {
		if strings.EqualFold(l.Tag, tag) {
			return l
		}
	}
	return nil
}

var matcher = sync.OnceValue(func() language.Matcher {
	var offered []language.Tag
	for _, tag := range tags {
		offered = append(offered, language.MustParse(tag))
	}
	return language.NewMatcher(offered)
})

// For is the language for a reader whose browser asks for some (Accept-Language).
func For(accepted string) *Language {
	asked, _, err := language.ParseAcceptLanguage(accepted[:min(len(accepted), longest)])
	if err != nil || len(asked) == 0 {
		return English()
	}
	_, i, _ := matcher().Match(asked...)
	return all()[i]
}

const longest = 500 // bytes of a header that is read

// Say is a text, with values at its named places: names and values take turns. Numbers are written as
// the language does; by the first of them the form of the text is chosen, where it has several.
func (l *Language) Say(key string, places ...any) string {
	return l.fill(l.text(key, places), places, func(s string) string { return s }, func(v any) string { return l.value(v) })
}

// HTML is a text with marks: `code`, *strong* and [link](place), the place having its address.
func (l *Language) HTML(key string, places ...any) template.HTML {
	return template.HTML(l.fill(l.text(key, places), places, marked, func(v any) string { //nolint:gosec // both are escaped
		switch v := v.(type) {
		case template.HTML:
			return string(v)
		case Bold:
			return "<b>" + l.value(v) + "</b>"
		}
		return html.EscapeString(l.value(v))
	}))
}

var (
	quoting = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	strong  = regexp.MustCompile(`\*([^*]+)\*`)
	leaning = regexp.MustCompile(`_([^_]+)_`)
	link    = regexp.MustCompile(`\[([^\]]+)\]\((\w+)\)`)
)

var asHTML sync.Map // by text: those of the files with marks

func marked(text string) string {
	if has, is := asHTML.Load(text); is {
		return has.(string)
	}
	parts := strings.Split(quoting.Replace(text), "`")
	for i, part := range parts {
		if i%2 == 1 {
			parts[i] = "<code>" + part + "</code>"
			continue
		}
		part = link.ReplaceAllString(part, `<a href="{$2}">$1</a>`)
		parts[i] = leaning.ReplaceAllString(strong.ReplaceAllString(part, "<strong>$1</strong>"), "<em>$1</em>")
	}
	html := strings.Join(parts, "")
	asHTML.Store(text, html)
	return html
}

// Bold is a number that stands out where a text has marks.
type Bold int64

func (l *Language) value(v any) string {
	switch v := v.(type) {
	case int64:
		return l.Number(v)
	case Bold:
		return l.Number(int64(v))
	case int:
		return l.Number(int64(v))
	case float64:
		return l.decimal(strconv.FormatFloat(v, 'g', 2, 64))
	}
	return fmt.Sprint(v)
}

// text is that of a key, in the form that goes with the first number.
func (l *Language) text(key string, places []any) string {
	for i := 1; i < len(places); i += 2 {
		form := ""
		switch n := places[i].(type) {
		case int64:
			form = l.plural(n, true)
		case Bold:
			form = l.plural(int64(n), true)
		case int:
			form = l.plural(int64(n), true)
		case float64:
			form = l.plural(int64(n), n == float64(int64(n)))
		default:
			continue
		}
		if text, is := l.texts[key+"."+form]; is {
			return text
		}
		if text, is := l.texts[key+".other"]; is {
			return text
		}
		break
	}
	text, is := l.texts[key]
	if !is {
		panic("no text is called " + key) // as no test lets pass
	}
	return text
}

func (l *Language) fill(text string, places []any, mark func(string) string, write func(any) string) string {
	text = mark(text)
	if !strings.Contains(text, "{") {
		return text
	}
	var out strings.Builder
	for {
		before, rest, open := strings.Cut(text, "{")
		name, after, closed := strings.Cut(rest, "}")
		out.WriteString(before)
		if !open || !closed {
			return out.String()
		}
		if strings.Contains(name, " ") { // it is no place, but a part of the text
			out.WriteString("{" + name + "}")
		}
		for i := 0; i+1 < len(places); i += 2 {
			if places[i] == name {
				out.WriteString(write(places[i+1]))
			}
		}
		text = after
	}
}

// Country is the name of a country by its code, and Tongue that of a language; "": it has none.
func (l *Language) Country(code string) string {
	if region, err := language.ParseRegion(code); err == nil {
		return display.Regions(language.Make(l.Tag)).Name(region)
	}
	return ""
}

// Tongue is the name of a language that visitors speak.
func (l *Language) Tongue(code string) string {
	if base, err := language.ParseBase(code); err == nil {
		return display.Languages(language.Make(l.Tag)).Name(base)
	}
	return ""
}

// elsewhere is the section of the files for texts that other packages make, in English. Their formats have the places {1}, {2} …
const elsewhere = "elsewhere."

// keys are those of that section, by the text in English.
var keys = sync.OnceValue(func() map[string]string {
	keys := map[string]string{}
	for key, text := range English().texts {
		if strings.HasPrefix(key, elsewhere) {
			keys[text] = key
		}
	}
	return keys
})

// Of is Text for a text that is no format if it has no values: it may have a %.
func (l *Language) Of(text string, values ...any) string {
	if len(values) > 0 {
		return l.Text(visit.Text{Format: text, Values: values})
	}
	if key, is := keys()[text]; is {
		return l.texts[key]
	}
	return text
}

var verb = regexp.MustCompile(`%(?:\[(\d)\])?([-+# 0-9.]*[a-z%])`)

// placed writes a format as the files do, with {1} for its first value, and calls found with each verb and the number of its value.
func placed(format string, found func(verb string, value int)) string {
	value := 0
	return verb.ReplaceAllStringFunc(format, func(written string) string {
		parts := verb.FindStringSubmatch(written)
		if written == "%%" {
			return "%"
		}
		if value++; parts[1] != "" {
			value, _ = strconv.Atoi(parts[1])
		}
		if found != nil {
			found("%"+parts[2], value)
		}
		return "{" + strconv.Itoa(value) + "}"
	})
}

// Text writes a text of another package with its values, each error among them in this language; in English if it is not in the files.
func (l *Language) Text(t visit.Text) string {
	var places []any
	key, is := keys()[placed(t.Format, func(verb string, value int) {
		if value <= len(t.Values) {
			places = append(places, strconv.Itoa(value), l.typed(verb, t.Values[value-1]))
		}
	})]
	if !is || l == English() {
		return t.String()
	}
	return l.Say(key, places...)
}

// typed writes a value of a text, in the quotation marks of the language if the format quotes it.
func (l *Language) typed(format string, value any) string {
	if e, is := value.(*visit.Error); is {
		return l.Text(e.Text)
	}
	text := fmt.Sprintf(format, value)
	if inside, err := strconv.Unquote(text); err == nil && text[0] == '"' {
		return l.Say("sentences.quoted", "text", inside)
	}
	return text
}

// Error writes what is wrong, each part in a line. Unless it is in the files, it is in English and begins with the field.
func (l *Language) Error(e *visit.Error) string {
	var lines []string
	for _, part := range e.All() {
		line := part.Message()
		if said := l.Text(part.Text); said != part.Text.String() {
			line = said
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
