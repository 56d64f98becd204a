package app

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"footfall/db"
	"footfall/visit"
)

// Settings of an app. A nil field leaves a setting as it is; a new app has the defaults.
type Settings struct {
	Access     *string  // open, sites, key
	TZ         *string  // IANA time zone; fixed once something is counted
	IPv6Prefix *int     // 32 to 128; fixed once something is counted
	Sites      []string // host or host:port, as a URI may write them, or *.host for all its subdomains
	KeepQuery  []string // query parameters that distinguish pages

	Visitor    *string  // address, id, hashed, daily; fixed once something is counted
	RespectDNT *bool    // do not count visitors who ask not to be tracked
	Bots       *string  // count, skip, or default
	Ignore     []string // addresses, networks and ids of visitors who are not counted

	PublicCounts *string // off, read, count: what anybody may do by badges

	RetainDays *int // days for which rows of visits are kept; 0: for ever
	ForgetDays *int // days after which a visitor who does not come to a site any more is forgotten there; 0: never

	// Limits: a number, 0 for no limit, or default.
	MaxRequests, MaxNewPages *string
}

// Who may count for an app.
const (
	AccessOpen  = "open"  // anybody, for any visitor; any site, or the sites listed
	accessSites = "sites" // anybody, for themselves; the sites listed
	accessKey   = "key"   // callers with a key; the sites listed
)

var accesses = []string{AccessOpen, accessSites, accessKey}

// What an app does with crawlers.
const (
	botsCount = "count"
	botsSkip  = "skip"
)

// What an app lets anybody do by badges.
const (
	publicOff   = "off"   // nothing
	publicRead  = "read"  // show sums of pages and sites
	publicCount = "count" // the same, and count visits
)

var publicCounts = []string{publicOff, publicRead, publicCount}

// byDefault leaves a setting to the service.
const byDefault = "default"

var appName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// CheckNew tells what is wrong with a new app, as far as no database is needed for that.
func CheckNew(name string, s Settings) error {
	if !appName.MatchString(name) {
		return visit.Errorf(visit.Invalid, "name", "%.64q is not a name for an app: use a–z, 0–9, - and _, at most 63, not beginning with - or _", name)
	}
	return s.make(&db.App{Name: name, Access: accessSites, RetainDays: 1}) // or more, by default: the row knows
}

// make changes a row as the settings say, unless nothing could be counted for it then.
func (s Settings) make(row *db.App) error {
	if err := s.apply(row); err != nil {
		return err
	}
	if row.Access != AccessOpen && len(row.Sites) == 0 {
		return visit.Errorf(visit.Invalid, "site", "app %s would count nothing: list its sites, or let anybody count any site with access %s", row.Name, AccessOpen)
	}
	if row.Access == accessKey && row.PublicCounts == publicCount {
		return visit.Errorf(visit.Invalid, "public-counts", "with access %s nobody counts without a key: write %s, or give another access", accessKey, publicRead)
	}
	return nil
}

// Apply is make, with the secret by which visitors are hashed.
func (s Settings) Apply(row *db.App, secret Secret) error {
	was := row.Visitor
	if err := s.make(row); err != nil {
		return err
	}
	switch {
	case row.Visitor == ByAddress:
		row.SecretID = nil
	case row.Visitor != was && len(secret) == 0:
		return visit.Errorf(visit.Invalid, "visitor", "%s visitors are hashed with a secret: give the one that the service has", row.Visitor)
	case row.Visitor != was:
		row.SecretID = secret.id()
	}
	return nil
}

// CheckFixed refuses to change settings on which the numbers of an app rest.
func CheckFixed(was, row *db.App) error {
	var f faults
	if row.Tz != was.Tz {
		f.add("tz: app %s has counted days of %s, which stay what they are: add another app for %s", row.Name, was.Tz, row.Tz)
	}
	if row.Visitor != was.Visitor {
		f.add("visitor: app %s has told visitors apart by %s, and they stay what they are: add another app for %s", row.Name, was.Visitor, row.Visitor)
	}
	if row.Ipv6Prefix != was.Ipv6Prefix {
		f.add("ipv6-prefix: app %s has told visitors apart by /%d networks, and they stay what they are: add another app for /%d", row.Name, was.Ipv6Prefix, row.Ipv6Prefix)
	}
	return f.error()
}

// apply checks every setting that is given and writes it into row. Its error tells all faults at
// once.
func (s Settings) apply(row *db.App) error {
	var f faults
	if s.TZ != nil {
		row.Tz = *s.TZ
		if _, err := time.LoadLocation(row.Tz); err != nil || row.Tz == "" || row.Tz == "Local" {
			f.add("tz: %.64q is not a time zone: write one like Europe/Berlin or UTC", row.Tz)
		}
	}
	if s.IPv6Prefix != nil {
		if *s.IPv6Prefix < 32 || *s.IPv6Prefix > 128 {
			f.add("ipv6-prefix: %d is out of range: from 32 (a provider) to 128 (one address)", *s.IPv6Prefix)
		} else {
			row.Ipv6Prefix = int16(*s.IPv6Prefix)
		}
	}
	if s.Access != nil {
		row.Access = *s.Access
		if !slices.Contains(accesses, row.Access) {
			f.add("access: %.64q is not known: write %s", row.Access, strings.Join(accesses, ", "))
		}
	}
	if s.Visitor != nil {
		row.Visitor = *s.Visitor
		if !slices.Contains(visitorModes, row.Visitor) {
			f.add("visitor: %.64q is not a way to tell visitors apart: write %s", row.Visitor, strings.Join(visitorModes, ", "))
		}
	}
	if s.Bots != nil {
		switch *s.Bots {
		case byDefault:
			row.Bots = nil
		case botsCount, botsSkip:
			row.Bots = s.Bots
		default:
			f.add("bots: %.64q is not known: write %s, %s or %s", *s.Bots, botsCount, botsSkip, byDefault)
		}
	}
	if s.PublicCounts != nil {
		row.PublicCounts = *s.PublicCounts
		if !slices.Contains(publicCounts, row.PublicCounts) {
			f.add("public-counts: %.64q is not known: write %s", row.PublicCounts, strings.Join(publicCounts, ", "))
		}
	}
	if s.RespectDNT != nil {
		row.RespectDnt = *s.RespectDNT
	}
	s.applyLists(row, &f)
	s.applyRetention(row, &f)
	applyLimit(&f, "max-requests", s.MaxRequests, &row.MaxRequests)
	applyLimit(&f, "max-new-pages", s.MaxNewPages, &row.MaxNewPages)
	return f.error()
}

func (s Settings) applyLists(row *db.App, f *faults) {
	if s.Sites != nil {
		row.Sites = readAll(f, s.Sites, readSite)
	}
	if s.Ignore != nil {
		row.Ignore = readAll(f, s.Ignore, readIgnored)
	}
	if s.KeepQuery != nil {
		row.KeepQuery = s.KeepQuery
		if slices.Contains(s.KeepQuery, "") {
			f.add("keep-query: a parameter has no name")
		}
	}
}

// longestRetention is a hundred years.
const longestRetention = 36500

func (s Settings) applyRetention(row *db.App, f *faults) {
	applyDays(f, "retain-days", s.RetainDays, &row.RetainDays, "for ever")
	applyDays(f, "forget-days", s.ForgetDays, &row.ForgetDays, "never")
	if row.ForgetDays > 0 && (row.RetainDays == 0 || row.ForgetDays < row.RetainDays) {
		f.add("forget-days: visits would be kept for longer than their visitors, and name them: give --retain-days from 1 to %d, or --forget-days 0", row.ForgetDays)
	}
}

func applyDays(f *faults, name string, given *int, to *int32, zero string) {
	switch {
	case given == nil:
	case *given < 0 || *given > longestRetention:
		f.add("%s: %d is not a number of days: write one up to %d, or 0: %s", name, *given, longestRetention, zero)
	default:
		*to = int32(*given) //nolint:gosec // it is in range
	}
}

// readAll returns what read makes of each text, without repetitions.
func readAll(f *faults, given []string, read func(string) (string, error)) []string {
	list := []string{}
	for _, raw := range given {
		one, err := read(raw)
		if err != nil {
			f.add("%v", err)
		} else if !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}

// applyLimit sets a limit: nil for the default.
func applyLimit(f *faults, name string, given *string, to **int32) {
	if given == nil {
		return
	}
	if *given == byDefault {
		*to = nil
		return
	}
	n, err := strconv.ParseInt(*given, 10, 32)
	if err != nil || n < 0 {
		f.add("%s: %.64q is not a limit: write a number up to %d, 0 for no limit, or %s", name, *given, math.MaxInt32, byDefault)
		return
	}
	limit := int32(n)
	*to = &limit
}

// faults gathers all that is wrong with the settings that somebody has typed.
type faults []string

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

func (f faults) error() error {
	if len(f) == 0 {
		return nil
	}
	return visit.Errorf(visit.Invalid, "", "%s", strings.Join(f, "\n"))
}
