// Package visit defines the terms that all other packages use: the target of a URI, the visitor of
// an address, days and ranges of days, the answer to a visit, and the errors that callers are told.
package visit

// Counts are the numbers of one target at the moment of a visit.
type Counts struct {
	PV int64 `json:"pv"` // (visitor, day) pairs
	UV int64 `json:"uv"` // visitors
	// Rank is the visitor's place in the order of first visits; 0: they never came, or no visitor
	// was named.
	Rank int64 `json:"rank"`
	Hot  int64 `json:"hot"` // visits
}

// Answer is what a visit gets back: the numbers of its site and of its page.
type Answer struct {
	Site Counts `json:"site"`
	Page Counts `json:"page"`

	Other    Target  `json:"-"` // that it was counted for, if not for the one that it names
	Skipped  Skipped `json:"-"` // why the visit was not counted, if that was on purpose
	Repeated bool    `json:"-"` // it was counted before; the numbers are those of now
	Later    bool    `json:"-"` // it will be counted in a moment
	Untold   bool    `json:"-"` // the caller is told no numbers
	// NoNumbers: the visit was counted, now or before, and nobody knows its numbers.
	NoNumbers bool  `json:"-"`
	Behind    int64 `json:"-"` // of an answer that counts nothing: visits of the app that are accepted and not counted yet
	PageOnly  bool  `json:"-"` // the caller may read the numbers of the page, and not those of its site
	Now       Now   `json:"-"` // the numbers that a request selects with Request.With
}

// Now holds numbers of the moment. A nil field was not requested.
type Now struct {
	Site, Page *Today
	Here       *int64 // visitors of the site in the last five minutes
}

// Today holds the numbers of one target on the app's current day, without offsets.
type Today struct {
	Hot int64 // visits
	PV  int64 // visitors
}

// Skipped is the reason for which a visit was not counted on purpose. It is "" for a visit that was
// counted.
type Skipped string

// The reasons for which a visit is not counted. It is then answered as /counts would answer.
const (
	SkippedPrefetch Skipped = "prefetch"     // a browser fetched the page in advance
	SkippedIgnored  Skipped = "ignored"      // the app ignores this visitor
	SkippedDNT      Skipped = "do-not-track" // the visitor asks for it, and the app respects that
	SkippedBot      Skipped = "bot"          // the visitor is a crawler or another program
)
