// Package visit defines types for all other packages: targets (pages and sites, read from URIs), visitors (from
// addresses), days and ranges of days, the answer to a visit, and errors for callers.
package visit

// Counts are the numbers of one target at the moment of a visit.
type Counts struct {
	PV int64 `json:"pv"` // number of (visitor, day) pairs: each visitor counts once per day
	UV int64 `json:"uv"` // number of visitors: each visitor counts once
	// Rank is the visitor's place in the order of first visits. It is 0 if the visitor has not visited the target
	// yet, or if the request is not about a visitor.
	Rank int64 `json:"rank"`
	Hot  int64 `json:"hot"` // number of visits: every visit counts
}

// Answer is the response to a visit: the numbers of the visit's site and page.
type Answer struct {
	Site Counts `json:"site"`
	Page Counts `json:"page"`

	Other    Target  `json:"-"` // the target for which the visit was counted, if this is not the requested target
	Skipped  Skipped `json:"-"` // why the visit was deliberately not counted
	Repeated bool    `json:"-"` // the visit had been counted before this request; the numbers are current
	Later    bool    `json:"-"` // the visit was accepted, and will be counted in a moment
	Untold   bool    `json:"-"` // the caller may not read numbers, so the response must not contain them
	// NoNumbers means that the visit was counted, by this request or before, but its numbers are unavailable.
	NoNumbers bool  `json:"-"`
	Behind    int64 `json:"-"` // number of accepted visits of the app that are not counted yet; only if the request is not a visit
	PageOnly  bool  `json:"-"` // the caller may read the numbers of the page but not of its site
	Now       Now   `json:"-"` // current numbers, as requested with counter.Request.With
}

// Now contains current numbers. A nil field was not requested.
type Now struct {
	Site, Page *Today
	Here       *int64 // number of visitors of the site in the last five minutes
}

// Today contains the numbers of one target on the app's current day, without offsets (numbers from before Footfall).
type Today struct {
	Hot int64 // number of visits
	PV  int64 // number of visitors
}

// Skipped is the reason why a visit was deliberately not counted. It is "" for a counted visit.
type Skipped string

// The reasons why a visit is not counted. The response to the visit then has the same numbers as a request to
// /counts.
const (
	SkippedPrefetch Skipped = "prefetch"     // a browser fetched the page in advance
	SkippedIgnored  Skipped = "ignored"      // the app ignores this visitor
	SkippedDNT      Skipped = "do-not-track" // the visitor's browser sends Do Not Track, and the app respects that
	SkippedBot      Skipped = "bot"          // the visitor is a crawler or another program
)
