package counter

import (
	"errors"
	"strings"
	"sync"
	"time"

	"footfall/counter/app"
	"footfall/visit"
)

// Refused is the last visit that this instance has not counted for an app, for those who wait for the first.
type Refused struct {
	Site string // of the page; "": it hides that
	Why  string // unlisted, origin, or why it was skipped
	At   time.Time
}

const (
	refusedFor = 10 * time.Minute // for how long somebody is told of one, and of a page that has loaded the script
	mostLoaded = 1000             // sites whose pages have
)

// loads are the sites of pages that have loaded the script from this instance, and when. A load names no app.
type loads struct {
	sync.Mutex
	at map[string]time.Time
}

// NoteLoaded notes the site of a page that has loaded the script, for those who wait for its first visit.
func (c *Counter) NoteLoaded(site string) {
	c.loaded.Lock()
	defer c.loaded.Unlock()
	for other := range c.loaded.at {
		if len(c.loaded.at) < mostLoaded {
			break
		}
		delete(c.loaded.at, other) // any: whoever waits loads the script again
	}
	c.loaded.at[strings.Clone(site)] = c.clock()
}

// Loaded is when a page of the app has loaded the script last; the zero time: none has of late.
func (r *Reading) Loaded() (last time.Time) {
	loaded := &r.counter.loaded
	loaded.Lock()
	defer loaded.Unlock()
	for site, at := range loaded.at {
		if at.After(last) && r.counter.clock().Sub(at) < refusedFor && r.Counts(site) {
			last = at
		}
	}
	return last
}

// noteRefused notes why a page's visit was not counted, one an app. Programs with a key are told themselves.
func (c *Counter) noteRefused(r *Request, err error, skipped visit.Skipped) {
	refused, is := errors.AsType[*visit.Error](err)
	if r.Key != "" || skipped == "" && (!is || refused.Kind != visit.Forbidden) {
		return
	}
	seen := Refused{Why: string(skipped), At: c.clock()}
	if target, err := visit.Normalize(r.URI, nil); err == nil {
		seen.Site = target.Site
	}
	switch {
	case skipped != "":
	case refused.Field == "uri":
		seen.Why = "unlisted"
	case refused.Field == "origin":
		seen.Why, seen.Site = "origin", app.SiteOfOrigin(r.Origin)
	default:
		return
	}
	c.refused.Store(r.App, seen)
}

// Counts reports whether the app counts a site.
func (r *Reading) Counts(site string) bool { return r.app.Counts(site) }

// Waiting tells of the last visit that this instance has not counted for an app; false where that is
// long ago.
func (c *Counter) Waiting(name string) (seen Refused, is bool) {
	if found, is := c.refused.Load(name); is {
		seen = found.(Refused)
	}
	return seen, c.clock().Sub(seen.At) < refusedFor
}
