package counter

import (
	"errors"
	"strings"
	"sync"
	"time"

	"footfall/counter/app"
	"footfall/visit"
)

// RefusedVisit is the last visit for an app that this instance refused to count. The app's setup page shows it until the first
// visit of the app is counted.
type RefusedVisit struct {
	Site string // the page's site; "": not sent
	Why  string // "unlisted" or "origin" if the app does not count the site, or why the visit was skipped
	At   time.Time
}

const (
	refusedFor = 10 * time.Minute // how long a refused visit, or a load of the script, is shown
	mostLoaded = 1000             // maximum number of sites in scriptLoads
)

// scriptLoads stores when a page of each site last loaded the counting script from this instance. It stores sites instead
// of apps, because the request for the script does not contain the app.
type scriptLoads struct {
	sync.Mutex
	lastLoads map[string]time.Time
}

// NoteLoaded records the site of a page that has loaded the script.
func (c *Counter) NoteLoaded(site string) {
	c.loaded.Lock()
	defer c.loaded.Unlock()
	for other := range c.loaded.lastLoads {
		if len(c.loaded.lastLoads) < mostLoaded {
			break
		}
		delete(c.loaded.lastLoads, other) // an arbitrary site: if a user is setting it up, its pages will load the script again
	}
	c.loaded.lastLoads[strings.Clone(site)] = c.clock()
}

// Loaded returns when a page of the app last loaded the script, or the zero time if no page did so recently.
func (r *Reading) Loaded() (last time.Time) {
	loaded := &r.counter.loaded
	loaded.Lock()
	defer loaded.Unlock()
	for site, at := range loaded.lastLoads {
		if at.After(last) && r.counter.clock().Sub(at) < refusedFor && r.Counts(site) {
			last = at
		}
	}
	return last
}

// noteRefused records, per app, why a page's visit was not counted. It ignores visits with a key: the programs that send such
// visits get the reason in the response.
func (c *Counter) noteRefused(r *Request, err error, skipped visit.Skipped) {
	refused, is := errors.AsType[*visit.Error](err)
	if r.Key != "" || skipped == "" && (!is || refused.Kind != visit.Forbidden) {
		return
	}
	seen := RefusedVisit{Why: string(skipped), At: c.clock()}
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

// LastRefused returns the last visit of an app that this instance did not count. The second result is false if there was no
// such visit recently.
func (c *Counter) LastRefused(name string) (seen RefusedVisit, is bool) {
	if found, is := c.refused.Load(name); is {
		seen = found.(RefusedVisit)
	}
	return seen, c.clock().Sub(seen.At) < refusedFor
}
