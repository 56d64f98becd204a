package report

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"footfall/visit"
	"footfall/visit/tag"
)

// WithoutOffsets is the only value of the parameter offsets: the numbers leave out offsets.
const WithoutOffsets = "no"

// ParseQuery parses the query of a URL. It accepts the parameters of the report, and the parameters named in others. It
// rejects all other parameters, because ignoring a misspelt one would return a different report. It returns the first error.
func (k Report) ParseQuery(query string, others ...string) (url.Values, error) {
	given, takes := url.Values{}, slices.Concat(others, k.Parameters)
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if pair == "" {
			continue
		}
		written, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(written)
		if err != nil || !slices.Contains(takes, name) {
			return nil, visit.Errorf(visit.Invalid, fmt.Sprintf("%.64q", written),
				"it is not a parameter of this report: use %s", strings.Join(takes, ", "))
		}
		value, err = url.QueryUnescape(value)
		switch {
		case err != nil:
			return nil, visit.Errorf(visit.Invalid, name, "it has a %% that is not followed by two hexadecimal digits: write %% as %%25")
		case value == "":
			return nil, visit.Errorf(visit.Invalid, name, "it is empty: give it a value, or leave it out")
		case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
			return nil, visit.Errorf(visit.Invalid, name, "it is not text: write it in UTF-8, without NUL")
		case len(given[name]) > 0 && !slices.Contains(k.Repeats, name):
			return nil, visit.Errorf(visit.Invalid, name, "it is given twice: give it once")
		}
		given[name] = append(given[name], value)
	}
	return given, nil
}

// Subject is the app of a requested report.
type Subject struct {
	App   string
	Today int32 // in the app's time zone
	// Target parses the address of a page or a site.
	Target func(text string) (string, error)
	// Visitors returns the addresses under which a visitor may be stored. It may be nil if the report has no parameter rank.
	Visitors func(ctx context.Context, ip, visitor string) ([]netip.Addr, error)
	// DefaultSite returns the site for a request that names no page or site. If it is nil, such a request fails.
	DefaultSite func(ctx context.Context) (string, error)
}

// question is a request for a report. Its methods read parameters.
type question struct {
	ctx     context.Context
	subject Subject
	params  url.Values
	err     error // the first error in a parameter; see fail
}

func (q *question) fail(err error) {
	if q.err == nil {
		q.err = err
	}
}

func (q *question) wrong(name, format string, args ...any) {
	q.fail(visit.Errorf(visit.Invalid, name, format, args...))
}

func (q *question) value(name string) string { return q.params.Get(name) }

// Look returns the parameters of a report as a Look. Before, the caller must reject parameters that the report does not accept,
// for example with ParseQuery. Look returns the first error.
func (k Report) Look(ctx context.Context, subject Subject, params url.Values) (Look, error) {
	q := &question{ctx: ctx, subject: subject, params: params}
	l := q.look(k)
	return l, q.err
}

func (q *question) look(k Report) Look {
	l := Look{
		App: q.subject.App, Today: q.subject.Today, In: q.days(), N: q.limit(k.AllowsAllRows()), Find: q.value("find"), Day: q.day("day"),
		Where: q.params["where"], Goal: q.value("goal"), Split: q.value("by"), Steps: q.params["step"],
		By: q.choice("order", "pv", "uv", "hot", "uri"), Period: q.choice("period", "day", "week", "month"),
		Name: cmp.Or(q.value("name"), tag.Names[0]), Value: q.value("value"), Before: q.number("days_before", mostBefore),
	}
	switch l.History = q.value("history") == "yes"; {
	case q.value("history") != "" && !l.History:
		q.wrong("history", "the only possible value is yes: write it, or leave it out")
	case l.History && len(l.Where) > 0:
		q.wrong("history", "imported days cannot be filtered: leave out the parameter history or the parameter where")
	}
	takes := func(name string) bool { return slices.Contains(k.Parameters, name) }
	switch {
	case takes("prefix"):
		l.Targets, l.Prefix = q.targets(), q.prefix()
		q.checkGroup(l)
	case k.OfApp && len(q.params["uri"])+len(q.params["site"]) == 0:
		if l.Before > 0 {
			q.wrong("days_before",
				"all sites of an app together cannot be compared: name a site, or request the other days separately")
		}
	case takes("uri") || k.OfSite:
		l.Target = q.target(takes("uri"))
	case takes("site"):
		l.Target = q.site()
	}
	if takes("value") && l.Value == "" {
		q.wrong("value", "it is missing: give a value of the tag")
	}
	if l.Find != "" && l.Target == "" {
		q.wrong("site", "it is missing: find searches the pages of one site")
	}
	if takes("rank") {
		if l.Rank = q.rank(); l.Rank == 0 {
			l.Stored = q.visitors()
		}
	}
	if after := q.value("after"); after != "" && q.err == nil {
		q.fail(k.ParseCursor(after, &l))
		if l.N == 0 && l.After.Before > 0 {
			q.wrong("after", "it is given together with limit=all: leave one of them out")
		}
	}
	if l.Counted = q.value("offsets") == WithoutOffsets; q.value("offsets") != "" && !l.Counted {
		q.wrong("offsets", "the only possible value is %s: leave it out to include numbers from elsewhere", WithoutOffsets)
	}
	l.Compared = q.compared(l)
	l.Day = cmp.Or(l.Day, l.Today)
	if !takes("limit") || k.Name == "goals" && q.value("limit") == "" {
		l.N = 0
	}
	if q.err == nil {
		q.fail(l.CheckWhere())
	}
	return l
}

// compared returns the part of the date range l.In that is compared with earlier days. If l.Before is 0, nothing is compared, and
// the result is empty.
func (q *question) compared(l Look) visit.Range {
	for _, name := range []string{"compared_from", "compared_to"} {
		if l.Before == 0 && q.value(name) != "" {
			q.wrong(name, "it is given without days_before: add days_before, or leave it out")
		}
	}
	switch {
	case l.Before == 0:
		return visit.Range{}
	case l.In.From == visit.AllDays.From:
		q.wrong("from", "it is missing: a comparison needs a first day")
	}
	from, to := q.day("compared_from"), q.day("compared_to")
	if to > l.In.To {
		q.wrong("compared_to", "%d is after the last day, %d", to, l.In.To)
	}
	return visit.Range{From: cmp.Or(from, l.In.From), To: cmp.Or(to, min(l.In.To, l.Today))}
}

// choice returns a parameter whose value has to be one of words. The first word is the default.
func (q *question) choice(name string, words ...string) string {
	word := cmp.Or(q.value(name), words[0])
	if !slices.Contains(words, word) {
		q.wrong(name, "%.64q is not possible: use %s", word, strings.Join(words, ", "))
	}
	return word
}

func (q *question) number(name string, most int) int {
	text := q.value(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		q.wrong(name, "%.64q is not a number from 1 to %d", text, most)
	}
	return n
}

const (
	usualLimit = 100
	mostLimit  = 1000
	mostBefore = 36_525 // maximum of the parameter days_before: a century
)

// limit returns the requested number of rows; 0 means all.
func (q *question) limit(whole bool) int {
	text := q.value("limit")
	if text == "" {
		return usualLimit
	}
	if whole && text == "all" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n < 1 || n > mostLimit {
		q.wrong("limit", "%.64q is not a number of rows: write one from 1 to %d", text, mostLimit)
	}
	return int(n)
}

// days returns the requested date range, or all days.
func (q *question) days() visit.Range {
	if q.value("from")+q.value("to") == "" {
		return visit.AllDays
	}
	in, err := visit.ParseRange(cmp.Or(q.value("from"), "all"), q.value("to"), q.subject.Today)
	q.fail(err)
	return in
}

// day returns the day in the parameter with this name, or 0 if the parameter is missing.
func (q *question) day(name string) int32 {
	text := q.value(name)
	if text == "" {
		return 0
	}
	day, err := visit.ParseDay(text, q.subject.Today)
	if err != nil {
		q.fail(visit.InField(name, err))
	}
	return day
}

func (q *question) site() string {
	text := q.value("site")
	if text == "" {
		return ""
	}
	site, err := visit.ParseSite(text)
	q.fail(err)
	return site
}

// targets returns the requested pages and sites, without duplicates.
func (q *question) targets() (targets []string) {
	for _, named := range []struct {
		values []string
		read   func(string) (string, error)
	}{{q.params["uri"], q.subject.Target}, {q.params["site"], visit.ParseSite}} {
		for _, value := range named.values {
			target, err := named.read(value)
			q.fail(err)
			if !slices.Contains(targets, target) {
				targets = append(targets, target)
			}
		}
	}
	return targets
}

func (q *question) target(uri bool) string {
	uris, sites := len(q.params["uri"]), len(q.params["site"])
	switch {
	case uris+sites == 0 && q.subject.DefaultSite != nil:
		site, err := q.subject.DefaultSite(q.ctx)
		q.fail(err)
		return site
	case uris+sites == 0 && !uri:
		q.wrong("site", "it is missing: give a host")
	case uris+sites == 0:
		q.wrong("uri", "it is missing: give uri, the address of a page, or site, a host")
	case uris > 0 && sites > 0:
		q.wrong("site", "it is given together with uri: use one of them")
	}
	if targets := q.targets(); len(targets) > 0 {
		return targets[0]
	}
	return ""
}

// prefix returns the common start of the requested pages' addresses, from the parameter prefix, or "".
func (q *question) prefix() string {
	text := q.value("prefix")
	if text == "" {
		return ""
	}
	if strings.ContainsAny(text, "?#") {
		q.wrong("prefix", "it has a query or a fragment: end it in the path, as in https://example.com/blog/")
		return ""
	}
	page, err := q.subject.Target(text)
	if err != nil {
		q.fail(visit.InField("prefix", err))
	} else if !strings.Contains(page, "/") {
		page += "/" // so that the prefix a.example does not match the site a.example.org
	}
	return page
}

func (q *question) checkGroup(l Look) {
	switch {
	case l.Prefix != "" && len(l.Targets) > 0:
		q.wrong("prefix", "it is given together with uri or site: use one of them")
	case l.Prefix == "" && len(l.Targets) == 0:
		q.wrong("uri", "it is missing: give uri, site or prefix")
	}
}

// rank returns the requested rank, or 0 if the request has the parameter ip or visitor instead.
func (q *question) rank() int64 {
	var given []string
	for _, name := range []string{"rank", "ip", "visitor"} {
		if q.value(name) != "" {
			given = append(given, name)
		}
	}
	switch {
	case len(given) == 0:
		q.wrong("rank", "it is missing: give rank, or ip (visitor, if the app has ids)")
	case len(given) > 1:
		q.wrong(given[1], "it is given together with %s: use one of them", given[0])
	}
	text := q.value("rank")
	if text == "" {
		return 0
	}
	rank, err := strconv.ParseInt(text, 10, 64)
	if err != nil || rank < 1 {
		q.wrong("rank", "%.64q is not a rank: write 1, 2, 3 …", text)
	}
	return rank
}

func (q *question) visitors() []netip.Addr {
	if q.err != nil {
		return nil
	}
	who, err := q.subject.Visitors(q.ctx, q.value("ip"), q.value("visitor"))
	q.fail(err)
	return who
}
