package app

import (
	"fmt"
	"strconv"
	"strings"

	"footfall/db"
	"footfall/visit"
)

// Setting describes one setting of an app for the command line, the pages and the API.
type Setting struct {
	Name    string   // as in the command-line flag and in errors
	Choices []string // the allowed words; nil: any value
	Many    bool     // the setting is a list
	// Hidden marks values that may be personal. A list of changes shows only how many there are.
	Hidden bool

	of func(*db.App) any   // returns the value
	at func(*Settings) any // returns the field of Settings that changes it
}

// Declared lists all settings in display order.
var Declared = []Setting{
	{Name: "access", Choices: accesses,
		of: func(r *db.App) any { return r.Access }, at: func(s *Settings) any { return &s.Access }},
	{Name: "site", Many: true,
		of: func(r *db.App) any { return r.Sites }, at: func(s *Settings) any { return &s.Sites }},
	{Name: "tz",
		of: func(r *db.App) any { return r.Tz }, at: func(s *Settings) any { return &s.TZ }},
	{Name: "public-counts", Choices: publicCounts,
		of: func(r *db.App) any { return r.PublicCounts }, at: func(s *Settings) any { return &s.PublicCounts }},
	{Name: "public-top", Choices: keeping,
		of: func(r *db.App) any { return isKept[r.PublicTop] }, at: func(s *Settings) any { return &s.PublicTop }},
	{Name: "public-events", Many: true,
		of: func(r *db.App) any { return r.PublicEvents }, at: func(s *Settings) any { return &s.PublicEvents }},
	{Name: "visitor", Choices: visitorModes,
		of: func(r *db.App) any { return r.Visitor }, at: func(s *Settings) any { return &s.Visitor }},
	{Name: "ipv6-prefix",
		of: func(r *db.App) any { return int(r.Ipv6Prefix) }, at: func(s *Settings) any { return &s.IPv6Prefix }},
	{Name: "retain-days",
		of: func(r *db.App) any { return int(r.RetainDays) }, at: func(s *Settings) any { return &s.RetainDays }},
	{Name: "forget-days",
		of: func(r *db.App) any { return int(r.ForgetDays) }, at: func(s *Settings) any { return &s.ForgetDays }},
	{Name: "tags", Many: true,
		of: func(r *db.App) any { return r.Tags }, at: func(s *Settings) any { return &s.Tags }},
	{Name: "filters", Choices: keeping,
		of: func(r *db.App) any { return isKept[r.Filters] }, at: func(s *Settings) any { return &s.Filters }},
	{Name: "titles", Choices: keeping,
		of: func(r *db.App) any { return isKept[r.Titles] }, at: func(s *Settings) any { return &s.Titles }},
	{Name: "goal", Many: true,
		of: func(r *db.App) any { return r.Goals }, at: func(s *Settings) any { return &s.Goals }},
	{Name: "keep-query", Many: true,
		of: func(r *db.App) any { return r.KeepQuery }, at: func(s *Settings) any { return &s.KeepQuery }},
	{Name: "bots", Choices: []string{botsCount, botsSkip, byDefault},
		of: func(r *db.App) any { return orDefault(r.Bots) }, at: func(s *Settings) any { return &s.Bots }},
	{Name: "respect-dnt", Choices: []string{"true", "false"},
		of: func(r *db.App) any { return r.RespectDnt }, at: func(s *Settings) any { return &s.RespectDNT }},
	{Name: "ignore", Many: true, Hidden: true,
		of: func(r *db.App) any { return r.Ignore }, at: func(s *Settings) any { return &s.Ignore }},
	{Name: "max-requests",
		of: func(r *db.App) any { return orDefault(r.MaxRequests) }, at: func(s *Settings) any { return &s.MaxRequests }},
	{Name: "max-new-pages",
		of: func(r *db.App) any { return orDefault(r.MaxNewPages) }, at: func(s *Settings) any { return &s.MaxNewPages }},
}

func orDefault[T any](chosen *T) any {
	if chosen == nil {
		return byDefault
	}
	return *chosen
}

// Column returns the setting's name in the tables and in JSON.
func (s *Setting) Column() string {
	switch s.Name {
	case "site", "goal":
		return s.Name + "s"
	}
	return strings.ReplaceAll(s.Name, "-", "_")
}

// Told returns an app as JSON shows it.
func Told(row *db.App) map[string]any {
	told := map[string]any{"name": row.Name}
	for _, s := range Declared {
		told[s.Column()] = s.of(row)
	}
	return told
}

// Text returns an app's value as the user types it, a list with one entry per line.
func (s *Setting) Text(row *db.App) string {
	if list, is := s.of(row).([]string); is {
		return strings.Join(list, "\n")
	}
	return fmt.Sprint(s.of(row))
}

// Give sets the setting to the typed values: one value, or the entries of a list.
func (s *Setting) Give(to *Settings, typed []string) error {
	if !s.Many && len(typed) != 1 {
		return visit.Errorf(visit.Invalid, s.Name, "it is one value, and no list: give it once")
	}
	switch field := s.at(to).(type) {
	case *[]string:
		*field = append([]string{}, typed...) // no values empty the list
	case **string:
		*field = &typed[0]
	case **int:
		n, err := strconv.Atoi(typed[0])
		if err != nil {
			return visit.Errorf(visit.Invalid, s.Name, "%.64q is not a number", typed[0])
		}
		*field = &n
	case **bool:
		is, err := strconv.ParseBool(typed[0])
		if err != nil {
			return visit.Errorf(visit.Invalid, s.Name, "%.64q is not possible: write true or false", typed[0])
		}
		*field = &is
	}
	return nil
}
