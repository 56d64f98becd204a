// Package words contains the texts of the pages in each language. It also formats numbers, days, and names of countries and
// languages. Each language has a file of texts. Other packages write texts in English for the command line and the API, and this
// package finds their translations by the English text.
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

// Language is a language of the pages.
type Language struct {
	Tag  string // BCP 47 tag, such as zh-CN
	Name string // name of the language in the language itself, such as Deutsch

	texts           map[string]string
	plural          func(n int64, whole bool) string
	names           [3][]string // names of weekdays, months, and short months
	group           string      // separator between groups of three digits
	ungroupedDigits int         // numbers with at most this many digits have no separator
}

// tags lists all languages, the default first.
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
		panic(fmt.Sprintf("%s: %v", tag, err)) // tests find such a file
	}
	base, _, _ := strings.Cut(tag, "-")
	l := &Language{Tag: tag, Name: texts["language.name"], texts: texts, plural: plurals[base]}
	for i, name := range []string{"weekdays", "months", "short-months"} {
		l.names[i] = strings.Split(texts["days."+name], " ")
	}
	l.group = texts["numbers.group"]
	l.ungroupedDigits, _ = strconv.Atoi(texts["numbers.digits-without-group"])
	return l
}

// All returns the available languages.
func All() []*Language { return all() }

// English returns the default language.
func English() *Language { return all()[0] }

// FindLanguage returns the language with a tag, or nil if there is none.
func FindLanguage(tag string) *Language {
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

// MatchLanguage returns the available language that matches an Accept-Language header best.
func MatchLanguage(accepted string) *Language {
	asked, _, err := language.ParseAcceptLanguage(accepted[:min(len(accepted), longest)])
	if err != nil || len(asked) == 0 {
		return English()
	}
	_, i, _ := matcher().Match(asked...)
	return all()[i]
}

const longest = 500 // maximum number of bytes that MatchLanguage reads of an Accept-Language header

// Say returns the text with a key. places contains the name of each placeholder in the text, followed by its value. Numbers are
// formatted for the language. The first number selects the plural form of the text.
func (l *Language) Say(key string, places ...any) string {
	return l.fill(l.text(key, places), places, func(s string) string { return s }, func(v any) string { return l.value(v) })
}

// HTML returns the text with a key as HTML. Texts can contain `code`, *strong*, _emphasis_ and [link](place), where place is the
// placeholder for the address.
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
	quoting  = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	strong   = regexp.MustCompile(`\*([^*]+)\*`)
	emphasis = regexp.MustCompile(`_([^_]+)_`)
	link     = regexp.MustCompile(`\[([^\]]+)\]\((\w+)\)`)
)

var asHTML sync.Map // results of marked, by text; all texts are from the files, so their number is limited

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
		parts[i] = emphasis.ReplaceAllString(strong.ReplaceAllString(part, "<strong>$1</strong>"), "<em>$1</em>")
	}
	html := strings.Join(parts, "")
	asHTML.Store(text, html)
	return html
}

// Bold is a number that HTML shows in bold.
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

// text returns the text with a key. places contains pairs of a placeholder's name and its value. If the text has plural forms,
// the first number among the values selects the form.
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
		panic("there is no text with the key " + key) // tests find such a key
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
		if strings.Contains(name, " ") { // not a placeholder, because their names have no spaces
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

// Country returns the name of the country with this code, or "" if the code is unknown.
func (l *Language) Country(code string) string {
	if region, err := language.ParseRegion(code); err == nil {
		return display.Regions(language.Make(l.Tag)).Name(region)
	}
	return ""
}

// LanguageName returns the name of the language with this code, or "" if the code is unknown.
func (l *Language) LanguageName(code string) string {
	if base, err := language.ParseBase(code); err == nil {
		return display.Languages(language.Make(l.Tag)).Name(base)
	}
	return ""
}

// elsewhere is the prefix of the keys of texts that other packages write. Placeholders in these texts are {1}, {2} and so on.
const elsewhere = "elsewhere."

// keys maps the English texts whose keys start with elsewhere to these keys.
var keys = sync.OnceValue(func() map[string]string {
	keys := map[string]string{}
	for key, text := range English().texts {
		if strings.HasPrefix(key, elsewhere) {
			keys[text] = key
		}
	}
	return keys
})

// Translate translates an English text. With values, the text is a format of fmt.Sprintf. Without values, it is not a format, so
// it may contain a %.
func (l *Language) Translate(text string, values ...any) string {
	if len(values) > 0 {
		return l.Text(visit.Text{Format: text, Values: values})
	}
	if key, is := keys()[text]; is {
		return l.texts[key]
	}
	return text
}

var verb = regexp.MustCompile(`%(?:\[(\d)\])?([-+# 0-9.]*[a-z%])`)

// convertFormat converts a format of fmt.Sprintf to the form in the files, in which {1} is the place of the first value. If found
// is not nil, convertFormat calls it for each verb of the format, with the verb and the number of its value.
func convertFormat(format string, found func(verb string, value int)) string {
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

// Text translates a text with its values. It also translates errors among the values. If the files do not have the text, it stays
// English.
func (l *Language) Text(t visit.Text) string {
	var places []any
	key, is := keys()[convertFormat(t.Format, func(verb string, value int) {
		if value <= len(t.Values) {
			places = append(places, strconv.Itoa(value), l.formatValue(verb, t.Values[value-1]))
		}
	})]
	if !is || l == English() {
		return t.String()
	}
	return l.Say(key, places...)
}

// formatValue formats a value with a verb of fmt.Sprintf. If the verb adds quotation marks, formatValue replaces them with those
// of the language.
func (l *Language) formatValue(format string, value any) string {
	if e, is := value.(*visit.Error); is {
		return l.Text(e.Text)
	}
	text := fmt.Sprintf(format, value)
	if inside, err := strconv.Unquote(text); err == nil && text[0] == '"' {
		return l.Say("sentences.quoted", "text", inside)
	}
	return text
}

// Error translates an error. Each of its parts is on its own line. A part without a translation stays English, and begins with
// the name of the field.
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
