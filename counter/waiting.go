package counter

import (
	"errors"
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

// refusedFor is for how long somebody is told of one.
const refusedFor = 10 * time.Minute

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
