package app

import (
	"fmt"
	"slices"
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
	// Hidden is true if the values may be personal. The change history then shows only the number of values.
	Hidden bool

	value func(*db.App) any   // returns the value
	field func(*Settings) any // returns the field of Settings that changes the setting
}

// AllSettings lists all settings in display order.
var AllSettings = []Setting{
	{Name: "access", Choices: accesses,
		value: func(r *db.App) any { return r.Access }, field: func(s *Settings) any { return &s.Access }},
	{Name: "site", Many: true,
		value: func(r *db.App) any { return r.Sites }, field: func(s *Settings) any { return &s.Sites }},
	{Name: "tz",
		value: func(r *db.App) any { return r.Tz }, field: func(s *Settings) any { return &s.TZ }},
	{Name: "public-counts", Choices: publicCounts,
		value: func(r *db.App) any { return r.PublicCounts }, field: func(s *Settings) any { return &s.PublicCounts }},
	{Name: "public-top", Choices: switchWords,
		value: func(r *db.App) any { return switchWord[r.PublicTop] }, field: func(s *Settings) any { return &s.PublicTop }},
	{Name: "public-events", Many: true,
		value: func(r *db.App) any { return r.PublicEvents }, field: func(s *Settings) any { return &s.PublicEvents }},
	{Name: "visitor", Choices: visitorModes,
		value: func(r *db.App) any { return r.Visitor }, field: func(s *Settings) any { return &s.Visitor }},
	{Name: "ipv6-prefix",
		value: func(r *db.App) any { return int(r.Ipv6Prefix) }, field: func(s *Settings) any { return &s.IPv6Prefix }},
	{Name: "retain-days",
		value: func(r *db.App) any { return int(r.RetainDays) }, field: func(s *Settings) any { return &s.RetainDays }},
	{Name: "forget-days",
		value: func(r *db.App) any { return int(r.ForgetDays) }, field: func(s *Settings) any { return &s.ForgetDays }},
	{Name: "tags", Many: true,
		value: func(r *db.App) any { return r.Tags }, field: func(s *Settings) any { return &s.Tags }},
	{Name: "filters", Choices: switchWords,
		value: func(r *db.App) any { return switchWord[r.Filters] }, field: func(s *Settings) any { return &s.Filters }},
	{Name: "titles", Choices: switchWords,
		value: func(r *db.App) any { return switchWord[r.Titles] }, field: func(s *Settings) any { return &s.Titles }},
	{Name: "goal", Many: true,
		value: func(r *db.App) any { return r.Goals }, field: func(s *Settings) any { return &s.Goals }},
	{Name: "keep-query", Many: true,
		value: func(r *db.App) any { return r.KeepQuery }, field: func(s *Settings) any { return &s.KeepQuery }},
	{Name: "bots", Choices: []string{botsCount, botsSkip, byDefault},
		value: func(r *db.App) any { return orDefault(r.Bots) }, field: func(s *Settings) any { return &s.Bots }},
	{Name: "respect-dnt", Choices: []string{"true", "false"},
		value: func(r *db.App) any { return r.RespectDnt }, field: func(s *Settings) any { return &s.RespectDNT }},
	{Name: "ignore", Many: true, Hidden: true,
		value: func(r *db.App) any { return r.Ignore }, field: func(s *Settings) any { return &s.Ignore }},
	{Name: "max-requests",
		value: func(r *db.App) any { return orDefault(r.MaxRequests) }, field: func(s *Settings) any { return &s.MaxRequests }},
	{Name: "max-new-pages",
		value: func(r *db.App) any { return orDefault(r.MaxNewPages) }, field: func(s *Settings) any { return &s.MaxNewPages }},
}

func orDefault[T any](chosen *T) any {
	if chosen == nil {
		return byDefault
	}
	return *chosen
}

// SettingNamed returns the setting with a name.
func SettingNamed(name string) *Setting {
	return &AllSettings[slices.IndexFunc(AllSettings, func(s Setting) bool { return s.Name == name })]
}

// Column returns the setting's name in the tables and in JSON.
func (s *Setting) Column() string {
	switch s.Name {
	case "site", "goal":
		return s.Name + "s"
	}
	return strings.ReplaceAll(s.Name, "-", "_")
}

// ToJSON returns the name and the settings of an app as members of a JSON object.
func ToJSON(row *db.App) map[string]any {
	members := map[string]any{"name": row.Name}
	for _, s := range AllSettings {
		members[s.Column()] = s.value(row)
	}
	return members
}

// Text returns the setting's value in row as a user types it. A list has one entry per line.
func (s *Setting) Text(row *db.App) string {
	if list, is := s.value(row).([]string); is {
		return strings.Join(list, "\n")
	}
	return fmt.Sprint(s.value(row))
}

// Parse sets the field of to for this setting. typed has the value as a user types it, or the entries of a list.
func (s *Setting) Parse(to *Settings, typed []string) error {
	if !s.Many && len(typed) != 1 {
		return visit.Errorf(visit.Invalid, s.Name, "only one value is possible: give it once")
	}
	switch field := s.field(to).(type) {
	case *[]string:
		*field = append([]string{}, typed...) // never nil, because nil would leave the list unchanged
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
