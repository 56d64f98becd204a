// Package tag reads what a visit brings besides its page and its visitor: where the visitor comes
// from, and with what. A tag is a name and a value, such as source and duckduckgo.
//
// Each value stands for many visitors. Of the page that a visitor comes from only the host is read,
// of a browser and its system only the name, of a language no region, of a time the hour. What a
// visit does not tell has no value, "". The values of browser, system, device, language and hour
// are of closed lists, those of country of two letters; sources and campaigns are open, as anybody
// may make up others: whoever keeps values has to bound how many.
//
// Anybody may claim anything of what is read here, as they may claim to have seen a page.
package tag

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"footfall/visit"
)

// Tag is a name and a value.
type Tag struct{ Name, Value string }

// The names that every app has.
const (
	Source   = "source"   // the host or the service that the visitor comes from
	Campaign = "campaign" // utm_campaign
	Country  = "country"  // DE
	Language = "language" // de
	Device   = "device"   // desktop, phone or tablet
	System   = "system"   // Windows
	Browser  = "browser"  // Firefox
	Hour     = "hour"     // 00 to 23
)

// Names are those that every app has, OfPages of them first.
var Names = []string{Source, Campaign, Country, Language, Device, System, Browser, Hour}

// OfPages is how many names pages have; sites have all. A row more a day for each value of each name
// would be nearly all that there is.
const OfPages = 2

// IsOfPages reports whether pages have the name, too.
func IsOfPages(name string) bool { return slices.Contains(Names[:OfPages], name) }

// IsOpen reports whether values of the name can be made up: of sources and campaigns by strangers,
// of names of the app's own by whoever may give tags.
func IsOpen(name string) bool { return !slices.Contains(Names[OfPages:], name) }

// IsOwn reports whether the name is one of an app's own.
func IsOwn(name string) bool { return !slices.Contains(Names, name) }

// Other is the value of what has one that is not kept.
const Other = "(other)"

// none is how people are shown that there is no value. It is none itself.
const none = "(none)"

// Bounds of what an app has.
const (
	MostBytes     = 100 // of a value
	MostNames     = 20  // that the app lists besides those that are built in
	MostNameBytes = 40  // of such a name
	MostNewADay   = 500 // values that are new on a day, of open names that are built in, and as many of its own; others count as Other
)

// Request is what a visit comes with, as its caller writes it.
type Request struct {
	URI       string         // of the page
	Site      string         // the page's, in canonical form: nobody comes from there
	Referrer  string         // the page that the visitor comes from
	Languages string         // Accept-Language
	Country   string         // its code, of the address or as the caller gives it
	Agent     Agent          // by ReadAgent, and With hints where there are any
	At        time.Time      // when it came
	Zone      *time.Location // of the app
	Own       Set            // of names of the app's own, as the caller gives them
}

// Set is the tags of a visit, those first that pages have.
type Set []Tag

// Read reads the tags of a visit.
func Read(r Request) Set {
	marks := readMarks(r.URI)
	s := make(Set, 0, len(Names))
	s.add(Source, sourceOf(&marks, r.Referrer, r.Site))
	s.add(Campaign, Value(marks.campaign()))
	s.add(Country, CountryOf(r.Country))
	s.add(Language, LanguageOf(r.Languages))
	s.add(Device, r.Agent.Device)
	s.add(System, r.Agent.System)
	s.add(Browser, r.Agent.Browser)
	s.add(Hour, HourOf(r.At, r.Zone))
	for _, own := range r.Own {
		s.add(own.Name, Value(own.Value))
	}
	return s
}

// Give adds a tag as a caller gives it, each name once, and at most as many as an app may list.
func (s *Set) Give(name, value string) error {
	switch {
	case slices.ContainsFunc(*s, func(t Tag) bool { return t.Name == name }):
		return visit.Errorf(visit.Invalid, "tags", "%.64q is given twice: give it once", name)
	case len(*s) == MostNames:
		return visit.Errorf(visit.Invalid, "tags", "there are more than %d: give those alone that the app lists", MostNames)
	}
	*s = append(*s, Tag{name, value})
	return nil
}

func (s *Set) add(name, value string) {
	if value != "" {
		*s = append(*s, Tag{name, value})
	}
}

// Text writes a set as ParseSet reads it. No name or value has control characters.
func (s Set) Text() string {
	var text strings.Builder
	for _, t := range s {
		text.WriteString(t.Name + "\x1f" + t.Value + "\n")
	}
	return text.String()
}

// ParseSet reads a set, without what cannot be a tag.
func ParseSet(text string) (s Set) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\x1f")
		if value != "" && len(value) <= MostBytes && (slices.Contains(Names, name) || CheckName(name) == nil) {
			s = append(s, Tag{name, value})
		}
	}
	return s
}

// Value returns the value that a text stands for: in lower case, without space around it. A text
// with control characters or invisible ones, or that is not UTF-8, is no value. One that is too long,
// or that may be somebody's e-mail address, is Other.
func Value(text string) string {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, misleads) {
		return ""
	}
	switch text = strings.ToLower(strings.Trim(strings.TrimSpace(text), joiners)); {
	case text == none:
		return ""
	case len(text) > MostBytes, strings.Contains(text, "@"), strings.Contains(text, "%40"):
		return Other
	}
	return text
}

// joiners are invisible, and some scripts cannot be written without them.
const joiners = "\u200c\u200d"

// misleads reports whether a character is a control, or an invisible one, as those that turn the
// direction of a text: so that it would be read as another one.
func misleads(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && !strings.ContainsRune(joiners, r)
}

// CheckName returns an error unless an app may have a tag of its own of this name.
func CheckName(name string) error {
	if slices.Contains(Names, name) {
		return visit.Errorf(visit.Invalid, "", "%s is there for every app: choose another name", name)
	}
	if name == "" || len(name) > MostNameBytes || name[0] < 'a' || name[0] > 'z' ||
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return visit.Errorf(visit.Invalid, "", "%.64q is not the name of a tag: write up to %d of a-z, 0-9 and _, the first a letter", name,
			MostNameBytes)
	}
	return nil
}

// HourOf returns the hour of a moment in a time zone, from 00 to 23. Where a clock is put back, two
// hours of a day have the same name, as on the clock; where it is put forward, one does not come.
func HourOf(at time.Time, zone *time.Location) string {
	const hours = "000102030405060708091011121314151617181920212223"
	hour := at.In(zone).Hour()
	return hours[2*hour : 2*hour+2]
}

// CountryOf returns the code of a country in two capital letters (ISO 3166). Codes that stand for
// no country, as proxies and lists have them for regions, networks and what they do not know, have
// no value.
func CountryOf(code string) string {
	if len(code) != 2 || !isLetter(code[0]) || !isLetter(code[1]) {
		return ""
	}
	switch code = strings.ToUpper(code); code {
	case "AP", "EU", "XX", "ZZ":
		return ""
	case "UK":
		return "GB"
	}
	return code
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// languages are those of two letters (ISO 639-1), and of three where browsers are in a language
// that has no shorter code.
const languages = " aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en " +
	"eo es et eu" +
	" fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr " +
	"ks ku kv kw ky" +
	" la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm " +
	"rn ro ru rw" +
	" sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi " +
	"yo za zh zu" +
	" ast bal ber brx chr ckb csb doi dsb fil fur gsw haw hsb kab kok mai mni sat scn skr szl tok trs vec yue "

// oldLanguages are codes that some systems still have for others.
var oldLanguages = map[string]string{"iw": "he", "in": "id", "ji": "yi", "jw": "jv", "mo": "ro", "sh": "sr"}

// LanguageOf returns the first language of a header Accept-Language, without its region and script:
// de for de-AT,en;q=0.5.
func LanguageOf(accepted string) string {
	first := strings.TrimLeft(accepted, " ")
	end := strings.IndexAny(first, "-_,; ")
	if end < 0 {
		end = len(first)
	}
	if end < 2 || end > 3 {
		return "" // *, and what is no language
	}
	code := strings.ToLower(first[:end])
	for i := range len(code) {
		if !isLetter(code[i]) {
			return ""
		}
	}
	if newer, old := oldLanguages[code]; old {
		return newer
	}
	if strings.Contains(languages, " "+code+" ") {
		return code
	}
	return Other
}
