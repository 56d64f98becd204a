package app

// Limits of an app that sets none of its own, where no trusted caller vouches for the visitor: far
// above what people do, and far below what a program can.
const (
	usualRequests = 600   // a minute from one address: an office behind one address clicks less
	usualNewPages = 2_000 // a day: at worst 3 GB a year (docs/decisions/0011-limits.md)
)

// limit is how many of something are allowed in a time; 0: any number.
type limit struct {
	most   int64
	chosen bool // by the app: then it holds for trusted callers, too
}

// of returns the limit as it holds for a request; 0: any number.
func (l limit) of(untrusted bool) int64 {
	if untrusted || l.chosen {
		return l.most
	}
	return 0
}

func limitOf(chosen *int32, usual int64) limit {
	if chosen == nil {
		return limit{most: usual}
	}
	return limit{most: int64(*chosen), chosen: true}
}

// MostRequests is how many requests of one address the app takes a minute; 0: any number.
func (a *App) MostRequests(untrusted bool) int64 { return a.requests.of(untrusted) }

// MostNewPages is how many pages the app makes a day; 0: any number.
func (a *App) MostNewPages(untrusted bool) int64 { return a.newPages.of(untrusted) }
