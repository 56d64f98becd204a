// Package tag reads further properties of a visit, apart from its page and visitor: the source, the campaign, the
// country, the browser and so on. A tag is a name and a value, such as source and duckduckgo.
//
// Tags are coarse, so that many visitors share each value. They have only the host of the referrer, the names of the
// browser and the system, the language without its region, and the hour without minutes. An unknown property has the
// value "". The values of browser, system, device, language and hour are from closed lists, and the values of country
// are two letters. The values of source and campaign are open: clients can make up any number of them. So callers
// that store values must limit their number.
//
// Values are not verified: a client can send any value, just as it can send a visit to a page that nobody has seen.
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

// The built-in names, which every app has.
const (
	Source   = "source"   // the host or the service that the visitor comes from
	Campaign = "campaign" // the value of utm_campaign
	Country  = "country"  // a code, like DE
	Language = "language" // a code, like de
	Device   = "device"   // desktop, phone or tablet
	System   = "system"   // like Windows
	Browser  = "browser"  // like Firefox
	Hour     = "hour"     // 00 to 23
)

// Names lists the built-in names. All of them apply to sites. The first OfPages names also apply to pages.
var Names = []string{Source, Campaign, Country, Language, Device, System, Browser, Hour}

// OfPages is the number of names that also apply to pages. If all names applied to pages, the database would have
// more rows for the tags of pages than for everything else.
const OfPages = 2

// IsOfPages reports whether the name also applies to pages.
func IsOfPages(name string) bool { return slices.Contains(Names[:OfPages], name) }

// IsOpen reports whether the name can have made-up values. Clients can make up sources and campaigns. Callers that
// are allowed to send tags can make up values of the app's own tags.
func IsOpen(name string) bool { return !slices.Contains(Names[OfPages:], name) }

// IsOwn reports whether an app has defined the name itself, so that it is not built in.
func IsOwn(name string) bool { return !slices.Contains(Names, name) }

// Other is stored instead of values that may not be stored, for example because there are too many.
const Other = "(other)"

// none is shown in reports for visits without a value. It is not stored as a value.
const none = "(none)"

// Limits of tags.
const (
	MostBytes     = 100 // maximum length of a value, in bytes
	MostNames     = 20  // maximum number of names that an app defines
	MostNameBytes = 40  // maximum length of such a name, in bytes
	MostNewADay   = 500 // new values per day for open built-in names, and as many for an app's own names; others count as Other
)

// Request has the properties of a visit as the caller sends them.
type Request struct {
	URI       string         // the page's URI
	Site      string         // the page's site in canonical form; it is never the source
	Referrer  string         // the page that the visitor comes from
	Languages string         // the header Accept-Language
	Country   string         // the country's code, derived from the address or sent by the caller
	Agent     Agent          // from ReadAgent, or from Agent.With if the browser has sent hints
	At        time.Time      // the time of the visit
	Zone      *time.Location // the app's time zone
	Own       Set            // tags sent by the caller, with names that the app defines
}

// Set contains the tags of a visit. The tags that apply to pages come first.
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

// Give adds a tag that a caller has sent. It returns an error if the name is already in the set, or if the set has as
// many names as an app may define.
func (s *Set) Give(name, value string) error {
	switch {
	case slices.ContainsFunc(*s, func(t Tag) bool { return t.Name == name }):
		return visit.Errorf(visit.Invalid, "tags", "%.64q is given twice: give it once", name)
	case len(*s) == MostNames:
		return visit.Errorf(visit.Invalid, "tags", "there are more than %d tags: send only the tags that the app lists", MostNames)
	}
	*s = append(*s, Tag{name, value})
	return nil
}

func (s *Set) add(name, value string) {
	if value != "" {
		*s = append(*s, Tag{name, value})
	}
}

// Text formats a set for ParseSet. It separates names and values with control characters, because names and values
// never contain these.
func (s Set) Text() string {
	var text strings.Builder
	for _, t := range s {
		text.WriteString(t.Name + "\x1f" + t.Value + "\n")
	}
	return text.String()
}

// ParseSet parses a set, and leaves out invalid tags.
func ParseSet(text string) (s Set) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\x1f")
		if value != "" && len(value) <= MostBytes && (slices.Contains(Names, name) || CheckName(name) == nil) {
			s = append(s, Tag{name, value})
		}
	}
	return s
}

// Value converts a text to the value that is stored: in lower case, without space at the start and the end. If the
// text has control or invisible characters, or is not UTF-8, the result is "". If the text is too long or may be an
// e-mail address, the result is Other.
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

// joiners are invisible characters that some scripts need in the middle of words.
const joiners = "\u200c\u200d"

// misleads reports whether a character is a control character, or is invisible and not in joiners. Such a character
// can disguise a value, for example by changing the direction of the text.
func misleads(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && !strings.ContainsRune(joiners, r)
}

// CheckName returns an error unless an app may define a tag with this name.
func CheckName(name string) error {
	if slices.Contains(Names, name) {
		return visit.Errorf(visit.Invalid, "", "%s exists for every app: choose another name", name)
	}
	if name == "" || len(name) > MostNameBytes || name[0] < 'a' || name[0] > 'z' ||
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return visit.Errorf(visit.Invalid, "", "%.64q is not the name of a tag: write up to %d of a-z, 0-9 and _, the first a letter", name,
			MostNameBytes)
	}
	return nil
}

// HourOf returns the hour of a time in a time zone, from 00 to 23. When clocks are set back, two hours of the day
// have the same name. When they are set forward, the day lacks one hour.
func HourOf(at time.Time, zone *time.Location) string {
	const hours = "000102030405060708091011121314151617181920212223"
	hour := at.In(zone).Hour()
	return hours[2*hour : 2*hour+2]
}

// CountryOf returns a country code in two capital letters (ISO 3166). It returns "" for codes that are not codes of
// countries, because proxies and lists also use codes for regions, networks and unknown countries.
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

// languages lists two-letter codes (ISO 639-1). It also lists three-letter codes that browsers use for languages
// without a two-letter code.
const languages = " aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en " +
	"eo es et eu" +
	" fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr " +
	"ks ku kv kw ky" +
	" la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm " +
	"rn ro ru rw" +
	" sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi " +
	"yo za zh zu" +
	" ast bal ber brx chr ckb csb doi dsb fil fur gsw haw hsb kab kok mai mni sat scn skr szl tok trs vec yue "

// oldLanguages maps outdated codes that some systems still use.
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
		return "" // "*", or not a language
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
