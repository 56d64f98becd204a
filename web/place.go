package web

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"footfall/visit"
	"footfall/web/words"
)

// Place contains the context of a page: its address, its language and its reader.
type Place struct {
	Root            string          // prefix of the paths of all pages, such as /numbers, or ""
	Words           *words.Language // nil means English
	At              *url.URL        // address of the page, for links to other languages; nil if the page shows an error
	SelectsLanguage bool            // the address selects the language, so links on the page select it, too

	Reader Reader
}

func (p Place) place() Place { return p }

func (p Place) words() *words.Language {
	if p.Words == nil {
		return words.English()
	}
	return p.Words
}

func (p Place) say(key string, places ...any) string { return p.words().Say(key, places...) }

// Lang returns the language for the HTML attribute lang.
func (p Place) Lang() string { return p.words().Tag }

// errorText returns the text of an error. Each part of the error is a sentence on its own line. For nil, it returns "".
func (p Place) errorText(err *visit.Error) string {
	if err == nil {
		return ""
	}
	var said []string
	for line := range strings.SplitSeq(p.words().Error(err), "\n") {
		said = append(said, sentence(p.words(), line))
	}
	return strings.Join(said, "\n")
}

// Scripts returns a JSON object of the texts that dash.js shows.
func (p Place) Scripts() string {
	if made, is := scripts.Load(p.words()); is {
		return made.(string)
	}
	texts := map[string]string{}
	for _, key := range []string{"copy", "copied", "chart", "keyboard", "keys-work", "this-list", "close"} {
		texts[key] = p.say("scripts." + key)
	}
	body, _ := json.Marshal(texts) // json.Marshal cannot fail for strings
	scripts.Store(p.words(), string(body))
	return string(body)
}

var scripts sync.Map // results of Scripts, by language

// Offered is a language in which the page is available, with its link.
type Offered struct {
	Tag, Name, Link string
	Chosen          bool
}

// Languages returns the languages to choose from. It returns nil if there is only one, or if p.At is nil.
func (p Place) Languages() (all []Offered) {
	if p.At == nil || len(words.All()) == 1 {
		return nil
	}
	query := p.At.Query()
	for _, l := range words.All() {
		query.Set("lang", l.Tag)
		at := url.URL{Path: p.At.Path, RawPath: p.At.RawPath, RawQuery: query.Encode()}
		all = append(all, Offered{l.Tag, l.Name, at.String(), l == p.words()})
	}
	return all
}

// linksAndForms matches links, addresses of forms, and forms of a page. Browsers replace the query in the address of a form that
// uses GET, so the form needs a hidden field for the language.
var linksAndForms = regexp.MustCompile(` (?:href|action)="(/[^"#]*|\?[^"#]*)|<form (?:class="[a-z]+" )?(?:role="search" )?action="[^"]*">`)

// keepLanguage adds the page's language to the page's links and forms, so that the next page has the same language. It leaves out
// links to the API and to files. If the page's address does not select the language, it adds nothing.
func (p Place) keepLanguage(body []byte) []byte {
	if !p.SelectsLanguage {
		return body
	}
	return linksAndForms.ReplaceAllFunc(body, func(found []byte) []byte {
		lead := string(found)
		if strings.HasPrefix(lead, "<form") {
			return []byte(lead + `<input type="hidden" name="lang" value="` + p.Lang() + `">`)
		}
		_, to, _ := strings.Cut(lead, `"`)
		if to = strings.TrimPrefix(to, p.Root); strings.HasPrefix(to, "/api/") || strings.HasPrefix(to, "/dash/icon") ||
			strings.HasPrefix(to, "/dash/style") || strings.Contains(to, "lang=") {
			return found
		}
		sign := "?"
		if strings.Contains(lead, "?") {
			sign = "&amp;"
		}
		return fmt.Appendf(nil, "%s%slang=%s", found, sign, p.Lang())
	})
}
