package app

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"footfall/db"
	"footfall/visit"
)

// Settings are the settings with which an app is created or changed. A nil field leaves a setting unchanged. A new app
// starts with the defaults. The struct tags are for the command line, whose help explains each setting.
type Settings struct {
	Access       *string  `placeholder:"WHO"`
	Sites        []string `name:"site" sep:"none" placeholder:"HOST"`
	TZ           *string  `name:"tz" placeholder:"ZONE"`
	IPv6Prefix   *int     `name:"ipv6-prefix" placeholder:"BITS"`
	KeepQuery    []string `sep:"none" placeholder:"NAME"`
	Visitor      *string  `placeholder:"HOW"`
	Bots         *string  `placeholder:"WHAT"`
	RespectDNT   *bool    `name:"respect-dnt" negatable:""`
	Ignore       []string `sep:"none" placeholder:"WHO"`
	IgnoreFile   []byte   `type:"filecontent" placeholder:"FILE"`
	PublicCounts *string  `placeholder:"WHAT"`
	RetainDays   *int     `placeholder:"N"`
	ForgetDays   *int     `placeholder:"N"`
	MaxRequests  *string  `placeholder:"N"`
	MaxNewPages  *string  `placeholder:"N"`
	Tags         []string `sep:"none" placeholder:"NAMES,..."`
	Filters      *string  `placeholder:"on|off"`
	Titles       *string  `placeholder:"on|off"`
	Goals        []string `name:"goal" sep:"none" placeholder:"CONDITION"`
	PublicTop    *string  `placeholder:"on|off"`
	PublicEvents []string `sep:"none" placeholder:"EVENTS,..."`
}

// Access: which callers can count for an app.
const (
	AccessOpen  = "open"  // any caller can count visits of any visitor, on the listed sites or, if none are listed, on all sites
	accessSites = "sites" // any caller can count its own visits, but only on the listed sites
	accessKey   = "key"   // only callers with a key can count, on the listed sites
)

var accesses = []string{AccessOpen, accessSites, accessKey}

// How an app treats crawlers.
const (
	botsCount = "count"
	botsSkip  = "skip"
)

// Numbers that an app shows without a key. The numbers of events are never included.
const (
	PublicOff     = "off"     // none
	PublicAnswers = "answers" // numbers of pages and sites, in responses to visits and queries
	PublicRead    = "read"    // as with answers, and in badges; if access is open, also in the dashboard and reports
	publicCount   = "count"   // as with read, and badges also count visits
)

// Words for settings that are on or off, such as filters and titles.
var (
	switchWord  = map[bool]string{true: "on", false: "off"}
	switchWords = []string{switchWord[true], switchWord[false]}
)

var publicCounts = []string{PublicOff, PublicAnswers, PublicRead, publicCount}

// byDefault is the value of a setting that selects the service's default.
const byDefault = "default"

var appName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// CheckName returns an error if a name is not valid for a new app.
func CheckName(name string) error {
	if !appName.MatchString(name) {
		return visit.Errorf(visit.Invalid, "name", "%.64q is not a name for an app: use a–z, 0–9, - and _, at most 63 characters, "+
			"not starting with - or _", name)
	}
	return nil
}

// CheckNew validates a new app as far as this is possible without the database.
func CheckNew(name string, s Settings) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return s.make(&db.App{Name: name, Access: accessSites, RetainDays: 1}) // the default in the database is at least 1
}

// make applies the settings to a row. It refuses settings with which the app could not count anything.
func (s Settings) make(row *db.App) error {
	if err := s.apply(row); err != nil {
		return err
	}
	if row.Access != AccessOpen && len(row.Sites) == 0 {
		return visit.Errorf(visit.Invalid, "site",
			"app %s would count nothing: list its sites, or choose access %s, with which anyone can count any site",
			row.Name, AccessOpen)
	}
	if row.Access == accessKey && row.PublicCounts == publicCount {
		return visit.Errorf(visit.Invalid, "public-counts",
			"with access %s, visits without a key are not counted: write %s, or choose another access",
			accessKey, PublicRead)
	}
	return nil
}

// Apply applies the settings to a row, and records which secret hashes the visitors.
func (s Settings) Apply(row *db.App, secret Secret) error {
	oldVisitor := row.Visitor
	if err := s.make(row); err != nil {
		return err
	}
	switch {
	case row.Visitor == ByAddress:
		row.SecretID = nil
	case row.Visitor != oldVisitor && len(secret) == 0:
		return visit.Errorf(visit.Invalid, "visitor",
			"%s visitors are hashed with a secret: configure the secret of the service", row.Visitor)
	case row.Visitor != oldVisitor:
		row.SecretID = secret.ID()
	}
	return nil
}

// CheckFixed refuses changes of settings that the counted numbers depend on.
func CheckFixed(old, row *db.App) error {
	var f faults
	if row.Tz != old.Tz {
		f.add("tz",
			"app %s has counted days in the time zone %s, and that cannot change: add another app for %s", row.Name, old.Tz, row.Tz)
	}
	if row.Visitor != old.Visitor && (old.Visitor != ByAddress || row.Visitor != ByHash) { // hashing can be turned on later
		f.add("visitor", "app %s has distinguished visitors by %s, and that cannot change: add another app for %s", row.Name, old.Visitor,
			row.Visitor)
	}
	if row.Ipv6Prefix != old.Ipv6Prefix {
		f.add("ipv6-prefix", "app %s has distinguished visitors by /%d networks, and that cannot change: add another app for /%d", row.Name,
			old.Ipv6Prefix, row.Ipv6Prefix)
	}
	return visit.Join(f...)
}

// zonesNow maps old names of time zones, which browsers still send, to current ones. PostgreSQL does not know the old
// names if the system's tz database lacks them, as on Debian 13.
var zonesNow = map[string]string{
	"Africa/Asmera": "Africa/Asmara", "America/Buenos_Aires": "America/Argentina/Buenos_Aires",
	"America/Catamarca": "America/Argentina/Catamarca", "America/Coral_Harbour": "America/Atikokan",
	"America/Cordoba": "America/Argentina/Cordoba", "America/Godthab": "America/Nuuk",
	"America/Indianapolis": "America/Indiana/Indianapolis", "America/Jujuy": "America/Argentina/Jujuy",
	"America/Louisville": "America/Kentucky/Louisville", "America/Mendoza": "America/Argentina/Mendoza",
	"Asia/Calcutta": "Asia/Kolkata", "Asia/Katmandu": "Asia/Kathmandu", "Asia/Rangoon": "Asia/Yangon",
	"Asia/Saigon": "Asia/Ho_Chi_Minh", "Atlantic/Faeroe": "Atlantic/Faroe", "Europe/Kiev": "Europe/Kyiv",
	"Pacific/Enderbury": "Pacific/Kanton", "Pacific/Ponape": "Pacific/Pohnpei", "Pacific/Truk": "Pacific/Chuuk",
}

// apply validates every given setting and writes it into row. Its error lists all faults at once.
func (s Settings) apply(row *db.App) error {
	var f faults
	if s.TZ != nil {
		if *s.TZ != row.Tz { // an app whose time zone has an old name keeps this name
			row.Tz = cmp.Or(zonesNow[*s.TZ], *s.TZ)
		}
		if _, err := time.LoadLocation(row.Tz); err != nil || row.Tz == "" || row.Tz == "Local" {
			f.add("tz", "%.64q is not a time zone: write one like Europe/Berlin or UTC", row.Tz)
		}
	}
	if s.IPv6Prefix != nil {
		if *s.IPv6Prefix < 32 || *s.IPv6Prefix > 128 {
			f.add("ipv6-prefix", "%d is out of range: use 32 (all addresses of a provider) to 128 (one address)", *s.IPv6Prefix)
		} else {
			row.Ipv6Prefix = int16(*s.IPv6Prefix)
		}
	}
	applyWord(&f, "access", s.Access, &row.Access, accesses, unknownWordFormat)
	applyWord(&f, "visitor", s.Visitor, &row.Visitor, visitorModes, "%.64q is not a way to distinguish visitors: write %s")
	applyWord(&f, "public-counts", s.PublicCounts, &row.PublicCounts, publicCounts, unknownWordFormat)
	if s.Bots != nil {
		bots := *s.Bots
		applyWord(&f, "bots", s.Bots, &bots, []string{botsCount, botsSkip, byDefault}, unknownWordFormat)
		row.Bots = &bots
		if bots == byDefault {
			row.Bots = nil
		}
	}
	if s.RespectDNT != nil {
		row.RespectDnt = *s.RespectDNT
	}
	listed := row.Sites
	applyList(&f, "site", s.Sites, &row.Sites, func(raw string) (string, error) {
		if slices.Contains(listed, raw) { // a site in the list may have been accepted by an earlier version
			return raw, nil
		}
		return readSite(raw)
	})
	applyList(&f, "ignore", s.Ignore, &row.Ignore, readIgnored)
	s.applyIgnoreFile(&f, row)
	applyList(&f, "keep-query", s.KeepQuery, &row.KeepQuery, readParameter)
	applyDays(&f, "retain-days", s.RetainDays, &row.RetainDays, "%d is out of range: use 1 to %d days, or 0 to keep visits for ever")
	applyDays(&f, "forget-days", s.ForgetDays, &row.ForgetDays, "%d is out of range: use 1 to %d days, or 0 to never forget visitors")
	if row.ForgetDays > 0 && (row.RetainDays == 0 || row.ForgetDays < row.RetainDays) {
		f.add("forget-days",
			"visits would be kept for longer than their visitors, so forgotten visitors would still be in the rows of visits: give "+
				"--retain-days from 1 to %d, or --forget-days 0", row.ForgetDays)
	}
	applyLimit(&f, "max-requests", s.MaxRequests, &row.MaxRequests)
	applyLimit(&f, "max-new-pages", s.MaxNewPages, &row.MaxNewPages)
	if s.Tags != nil {
		row.Tags = readTags(&f, s.Tags)
	}
	if applyList(&f, "goal", s.Goals, &row.Goals, readGoal); len(row.Goals) > mostGoals {
		f.add("goal", "there are %d: at most %d are possible", len(row.Goals), mostGoals)
	}
	if applyList(&f, "public-events", s.PublicEvents, &row.PublicEvents, readPublicEvent); len(row.PublicEvents) > mostGoals {
		f.add("public-events", "there are %d: at most %d are possible", len(row.PublicEvents), mostGoals)
	}
	applySwitch(&f, "public-top", s.PublicTop, &row.PublicTop)
	applySwitch(&f, "filters", s.Filters, &row.Filters)
	applySwitch(&f, "titles", s.Titles, &row.Titles)
	return visit.Join(f...)
}

// faults collects all faults of the typed settings.
type faults []error

// invalid returns an error about a value, without a field. visit.InField adds the field.
func invalid(format string, args ...any) error {
	return visit.Errorf(visit.Invalid, "", format, args...)
}

func (f *faults) add(setting, format string, args ...any) {
	*f = append(*f, visit.Errorf(visit.Invalid, setting, format, args...))
}
