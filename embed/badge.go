package embed

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"footfall/report/draw"
	"footfall/visit"
)

// Badge has the parameters of a badge.
type Badge struct {
	URI    string
	Event  string // name of an event to show instead of a page, or ""
	Site   bool   // the badge shows the number of the site, not of the page
	Number string // the number that the badge shows: hot, pv or uv
	Count  bool   // each time that the badge is displayed, a visit is counted
	// WithoutOffsets is true if the badge leaves out offsets, which are numbers from other counters.
	WithoutOffsets bool

	label string
}

// badgeNumbers and eventNumbers are the possible values of the parameter show. The first value is the default.
// badgeLabels are the default labels.
var (
	badgeNumbers = []string{"page.hot", "page.pv", "page.uv", "site.hot", "site.pv", "site.uv"}
	eventNumbers = []string{"event.hot", "event.pv", "event.uv"}
	badgeLabels  = map[string]string{"hot": "visits", "pv": "daily visitors", "uv": "visitors"}
)

const (
	longestLabel = 64 // maximum length of a label, in characters
	noNumber     = "–"
)

// ReadBadge parses the parameters of a badge. If the value of a parameter is invalid, ReadBadge uses the default
// instead, so that the badge can still be drawn. It returns an error for the first invalid value. It ignores unknown
// parameters, because READMEs still contain the parameters color, style and chart of earlier versions of Footfall.
func ReadBadge(q url.Values) (b Badge, err error) {
	wrong := func(name, format string, args ...any) {
		if err == nil {
			err = visit.Errorf(visit.Invalid, name, format, args...)
		}
	}
	oneOf := func(name string, words []string) string {
		switch value := q.Get(name); {
		case slices.Contains(words, value):
			return value
		case value != "":
			wrong(name, "%.64q is not possible: use %s", value, strings.Join(words, ", "))
		}
		return words[0]
	}
	is := func(name, wanted string) bool {
		value := q.Get(name)
		if value != "" && value != wanted {
			wrong(name, "%.64q is not possible: write %s, or leave it out", value, wanted)
		}
		return value == wanted
	}
	b = Badge{URI: q.Get("uri"), Event: q.Get("event")}
	numbers := badgeNumbers
	if b.Event != "" {
		numbers = eventNumbers
		if q.Has("count") {
			wrong("event", "badges of events do not count: leave count out")
		}
	}
	target, number, _ := strings.Cut(oneOf("show", numbers), ".")
	b.Site, b.Number = target == "site", number
	b.label = badgeLabels[b.Number]
	if label := q.Get("label"); !utf8.ValidString(label) || utf8.RuneCountInString(label) > longestLabel ||
		strings.ContainsFunc(label, unicode.IsControl) {
		wrong("label", "it is not a text of at most %d characters", longestLabel)
	} else if q.Has("label") {
		b.label = label
	}
	b.Count, b.WithoutOffsets = is("count", "1"), is("offsets", "no")
	return b, err
}

// NumberIn returns the number in a that the badge shows.
func (b Badge) NumberIn(a visit.Answer) int64 {
	counts := a.Page
	if b.Site {
		counts = a.Site
	}
	switch b.Number {
	case "pv":
		return counts.PV
	case "uv":
		return counts.UV
	}
	return counts.Hot
}

// SVG draws the badge with a number, or with a dash if number is nil.
func (b Badge) SVG(number *int64) []byte {
	return []byte(draw.Badge{Label: b.label, Message: message(number)}.SVG())
}

// JSON returns the badge in the format of shields.io.
func (b Badge) JSON(number *int64) []byte {
	body, _ := json.Marshal(struct { // json.Marshal cannot fail for these types
		SchemaVersion int    `json:"schemaVersion"`
		Label         string `json:"label"`
		Message       string `json:"message"`
		Color         string `json:"color"`
		IsError       bool   `json:"isError,omitempty"`
	}{1, b.label, message(number), draw.BadgeColor, number == nil})
	return body
}

func message(number *int64) string {
	if number == nil {
		return noNumber
	}
	return draw.Number(*number)
}
