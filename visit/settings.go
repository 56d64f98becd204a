package visit

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"footfall/db"
)

// Settings are what an app is made of. A nil field of SetApp leaves what is.
type Settings struct {
	TZ         *string  // IANA time zone; fixed once something is counted
	IPv6Prefix *int     // 32 to 128
	Open       *bool    // counts any host, believes an asserted ip
	Sites      []string // host or host:port, as a URI may write them
	KeepQuery  []string // query parameters that distinguish pages
}

// settlePatience is how long a change of apps waits for the instances that run.
const settlePatience = 5 * time.Second

var appName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// AddApp adds an app. When it returns nil every running instance knows the app; db.ErrUnsettled means that it was added
// and that some instance has not answered yet.
func AddApp(ctx context.Context, d *db.DB, name string, s Settings) error {
	row := db.App{Tz: "UTC", Ipv6Prefix: 64, Sites: []string{}, KeepQuery: []string{}}
	if !appName.MatchString(name) {
		return invalidf("name: %.64q is no name for an app: use a–z, 0–9, - and _, at most 63, not beginning with - or _", name)
	}
	if err := s.apply(&row); err != nil {
		return err
	}
	if err := countsSomething(name, row); err != nil {
		return err
	}
	added, err := d.AppAdd(ctx, db.AppAddParams{
		Name: name, Tz: row.Tz, Ipv6Prefix: row.Ipv6Prefix, Open: row.Open, Sites: row.Sites, KeepQuery: row.KeepQuery,
	})
	if err != nil {
		return fmt.Errorf("add app %s: %w", name, err)
	}
	if added == 0 {
		return invalidf("name: there is an app %s already: change it with `footfall app set %s`", name, name)
	}
	return d.SettleApps(ctx, settlePatience)
}

// SetApp changes an app's settings, as AddApp adds one.
func SetApp(ctx context.Context, d *db.DB, name string, s Settings) error {
	err := d.InTx(ctx, func(q *db.Queries) error {
		row, err := q.AppLock(ctx, name)
		if errors.Is(err, db.ErrNoRows) {
			return &Error{Kind: NotFound, Message: fmt.Sprintf("name: there is no app %.64q: `footfall app list` names them", name)}
		}
		if err != nil {
			return err
		}
		tz := row.Tz
		if err := s.apply(&row); err != nil {
			return err
		}
		if err := countsSomething(name, row); err != nil {
			return err
		}
		if row.Tz != tz {
			counts, err := q.AppCounts(ctx, row.ID)
			if err != nil {
				return err
			}
			if counts {
				return invalidf("tz: app %s has counted days of %s, which stay what they are: add another app for %s", name, tz, row.Tz)
			}
		}
		return q.AppSet(ctx, db.AppSetParams{
			ID: row.ID, Tz: row.Tz, Ipv6Prefix: row.Ipv6Prefix, Open: row.Open, Sites: row.Sites, KeepQuery: row.KeepQuery,
		})
	})
	var told *Error
	if errors.As(err, &told) {
		return told
	}
	if err != nil {
		return fmt.Errorf("set app %s: %w", name, err)
	}
	return d.SettleApps(ctx, settlePatience)
}

func countsSomething(name string, row db.App) error {
	if row.Open || len(row.Sites) > 0 {
		return nil
	}
	return invalidf("site: app %s would count nothing: name its sites with --site HOST, or let it count any host with --open", name)
}

// apply checks every setting that is given and writes it into row; it tells all faults at once.
func (s Settings) apply(row *db.App) error {
	var faults []string
	if s.TZ != nil {
		row.Tz = *s.TZ
		if _, err := time.LoadLocation(row.Tz); err != nil || row.Tz == "" || row.Tz == "Local" {
			faults = append(faults, fmt.Sprintf("tz: %.64q is no time zone: write one like Europe/Berlin or UTC", row.Tz))
		}
	}
	if s.IPv6Prefix != nil {
		if *s.IPv6Prefix < 32 || *s.IPv6Prefix > 128 {
			faults = append(faults, fmt.Sprintf("ipv6-prefix: %d is out of range: from 32 (a provider) to 128 (one address)", *s.IPv6Prefix))
		} else {
			row.Ipv6Prefix = int16(*s.IPv6Prefix)
		}
	}
	if s.Open != nil {
		row.Open = *s.Open
	}
	if s.Sites != nil {
		row.Sites = []string{}
		for _, raw := range s.Sites {
			site, err := readSite(raw)
			if err != nil {
				faults = append(faults, err.Error())
			} else if !slices.Contains(row.Sites, site) {
				row.Sites = append(row.Sites, site)
			}
		}
	}
	if s.KeepQuery != nil {
		row.KeepQuery = s.KeepQuery
		if slices.Contains(s.KeepQuery, "") {
			faults = append(faults, "keep-query: a parameter has no name")
		}
	}
	if len(faults) > 0 {
		return &Error{Kind: Invalid, Message: strings.Join(faults, "\n")}
	}
	return nil
}

// readSite reads what --site names: a host, or a host and a port.
func readSite(raw string) (string, error) {
	scheme := "http://"
	if strings.HasSuffix(raw, ":80") {
		scheme = "https://" // where 80 is not the port that is left out
	}
	target, err := Normalize(scheme+raw, nil)
	if err != nil || target.Page != target.Site+"/" || strings.ContainsAny(raw, "/\\?#@") {
		return "", fmt.Errorf("site: %.128q is no site: write a host like example.com, or a host and a port like localhost:3000", raw)
	}
	return target.Site, nil
}

func invalidf(format string, args ...any) error {
	return &Error{Kind: Invalid, Message: fmt.Sprintf(format, args...)}
}
