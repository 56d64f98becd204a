// Package generate makes up visits: it has them counted for an app of their own, as many as reports
// and checks are to be tried on, or writes them as an access log.
package generate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"footfall/admin"
	"footfall/bench"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/intake"
)

// Set is the size of what is generated, as flags. A zero field means its default.
type Set struct {
	App      string    `placeholder:"NAME" help:"The app that is made; it must not exist yet. It counts in UTC. Default: generated."`
	Visits   int       `placeholder:"N" help:"How many visits. Default: 10000000."`
	Days     int       `placeholder:"N" help:"Days over which the visits came. Default: 60."`
	Until    time.Time `placeholder:"DAY" format:"2006-01-02" help:"The last day, like 2019-06-29. Default: yesterday."`
	Pages    int       `placeholder:"N" help:"How many pages, few of which are visited often. Default: 100000."`
	Visitors int       `placeholder:"N" help:"How many visitors, few of whom come often. Default: 1000000."`
	Sites    int       `placeholder:"N" help:"How many sites, few of which are large. Default: 20."`
	Seed     uint64    `placeholder:"N" help:"The same seed makes the same visits. Default: 1."`
}

// Completed has the defaults in place of what was not given.
func (s Set) Completed() Set {
	if s.App == "" {
		s.App = "generated"
	}
	for value, whole := range map[*int]int{&s.Visits: 10_000_000, &s.Days: 60, &s.Pages: 100_000, &s.Visitors: 1_000_000, &s.Sites: 20} {
		if *value == 0 {
			*value = whole
		}
	}
	if s.Seed == 0 {
		s.Seed = 1
	}
	if s.Until.IsZero() {
		s.Until = time.Now().UTC().AddDate(0, 0, -1)
	}
	s.Until = s.Until.UTC().Truncate(24 * time.Hour)
	return s
}

// Check tells what of it cannot be made up. What is not given is right.
func (s Set) Check() (faults []error) {
	s = s.Completed()
	for flag, n := range map[string]int{"visits": s.Visits, "days": s.Days, "pages": s.Pages, "visitors": s.Visitors, "sites": s.Sites} {
		if n < 1 {
			faults = append(faults, fmt.Errorf("%s: %d will not do: give 1 or more", flag, n))
		}
	}
	switch {
	case len(faults) > 0:
		return faults
	case s.Pages < s.Sites:
		return []error{fmt.Errorf("pages: %d are too few for %d sites: each has one at least", s.Pages, s.Sites)}
	case s.Visits < max(s.Pages, s.Visitors, s.Days):
		return []error{fmt.Errorf("visits: %d are too few: every page, visitor and day (%d, %d, %d) has one at least", s.Visits, s.Pages, s.Visitors, s.Days)}
	case s.Visitors > 16_000_000:
		return []error{fmt.Errorf("visitors: %d are too many: give up to 16000000", s.Visitors)}
	case s.Days > 10_000:
		return []error{fmt.Errorf("days: %d are too many: give up to 10000", s.Days)}
	case s.Visits > math.MaxInt32:
		return []error{fmt.Errorf("visits: %d are too many: give up to %d", s.Visits, math.MaxInt32)}
	}
	return nil
}

// String says what is made up.
func (s Set) String() string {
	return fmt.Sprintf("app %s: %s visits over %d days by %s visitors to %s pages of %d sites, seed %d", s.App,
		bench.Grouped(float64(s.Visits)), s.Days, bench.Grouped(float64(s.Visitors)), bench.Grouped(float64(s.Pages)), s.Sites, s.Seed)
}

// Run makes an app in the database that Options.DatabaseURL names, and counts its visits one day
// after the other, as POST /visits does. The set must have passed Check.
func Run(ctx context.Context, o bench.Options, set Set) error {
	set = set.Completed()
	d, err := bench.Migrated(ctx, o.DatabaseURL)
	if err != nil {
		return err
	}
	defer d.Close()
	// The app counts in UTC, believes whatever a caller asserts, and keeps all visits.
	open, unlimited, forever := "open", "0", 0
	settings := app.Settings{Access: &open, MaxNewPages: &unlimited, RetainDays: &forever, ForgetDays: &forever}
	if err := admin.New(d, nil).AddApp(ctx, set.App, settings); err != nil {
		return err
	}
	if err = count(ctx, d, set, o); err == nil {
		err = bench.Vacuum(ctx, o.DatabaseURL)
	}
	if err != nil {
		return fmt.Errorf("app: %s was begun and is not complete: delete it with `footfall app delete %s`, or begin with a new folder: %w", set.App, set.App, err)
	}
	return nil
}

// callVisits is how many visits are sent at once: so few that each call is answered in time.
const callVisits = intake.MostItems / 2

// Of visitors, as often as they stand there.
var (
	languages = []string{"en", "de", "en", "ja", "en", "fr", "de", "zh", "en", "de", "es"}
	countries = []string{"DE", "US", "DE", "JP", "US", "FR", "AT", "GB", "DE", "IN", "US", "CH", "NL"}
)

func count(ctx context.Context, d *db.DB, set Set, o bench.Options) error {
	o.Doing("drawing %d visits", set.Visits)
	drawn, now := drawVisits(set), d.Now()
	c, err := counter.Open(ctx, d, counter.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	desk, day, brings := intake.NewDesk(), -1, drawn.brings(set.Seed)
	for from := 0; from < set.Visits; from += callVisits {
		if drawn.dayOf(from) != day {
			day = drawn.dayOf(from)
			o.Doing("counting day %d of %d", day+1, set.Days)
		}
		var body bytes.Buffer
		for n := from; n < min(from+callVisits, set.Visits); n++ {
			at := drawn.moment(n)
			if at.After(now) { // where the last day is not over
				at = now
			}
			query, from, agent := brings(n)
			fmt.Fprintf(&body, `{"uri":"http://%s","ip":"%s","at":"%s","agent":%q,"referrer":%q,"language":%q,"country":%q}`+"\n",
				drawn.uri(int(drawn.page[n]))+query, drawn.address(drawn.visitor[n]), at.Format(time.RFC3339), agents[agent], from,
				languages[int(drawn.visitor[n])%len(languages)], countries[int(drawn.visitor[n])%len(countries)])
		}
		permit, err := c.AuthorizeOperator(ctx, set.App)
		if err != nil {
			return err
		}
		results, internal, err := desk.Count(ctx, intake.Call{Counting: permit, Body: &body, Length: int64(body.Len()), Lines: true, SumsOnly: true})
		if err := errors.Join(err, internal, ctx.Err()); err != nil {
			return err
		}
		for _, r := range results {
			if r.Outcome != intake.Counted {
				return fmt.Errorf("a visit was not counted: %s", cmp.Or(r.Fault, "the database is too slow"))
			}
		}
	}
	return nil
}
