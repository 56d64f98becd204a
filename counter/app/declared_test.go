package app

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
)

// Every setting that the command line can change is available to pages and programs too, under its own name.
func TestEverySettingIsDeclared(t *testing.T) {
	t.Parallel()
	was := db.App{Tz: "UTC", Access: accessSites, Sites: []string{"a.example"}, Visitor: ByAddress, PublicCounts: PublicOff, RetainDays: 35,
		Tags: []string{"hour"}}
	values := map[string]any{"access": AccessOpen, "site": []string{"b.example"}, "tz": "Europe/Berlin", "public-counts": PublicRead,
		"visitor": ByHash, "ipv6-prefix": 56, "retain-days": 40, "forget-days": 50, "tags": []string{"hour", "plan"}, "filters": "on",
		"titles": "on", "goal": []string{"event:signup"}, "keep-query": []string{"q"}, "bots": botsSkip, "respect-dnt": true,
		"ignore": []string{"192.0.2.0/24"}, "max-requests": int32(7), "max-new-pages": int32(8),
		"public-top": "on", "public-events": []string{"like/*"}}
	declared := map[string]bool{"ignore-file": true} // it is read into ignore
	for _, s := range AllSettings {
		declared[s.Name] = true
		var given Settings
		row := db.App{}
		require.Contains(t, values, s.Name)
		typed := strings.Split((&Setting{value: func(*db.App) any { return values[s.Name] }}).Text(&row), "\n")
		require.NoError(t, s.Parse(&given, typed), s.Name)
		if !s.Many {
			assert.ErrorContains(t, s.Parse(&given, []string{"1", "1"}), s.Name+": only one value is possible", s.Name)
		}
		row = was
		require.NoError(t, given.Apply(&row, Secret("a secret of thirty-two characters")), s.Name)
		for _, other := range AllSettings {
			if other.Name == s.Name {
				assert.EqualValues(t, values[s.Name], s.value(&row), s.Name)
			} else {
				assert.Equal(t, other.value(&was), other.value(&row), "%s leaves %s as it is", s.Name, other.Name)
			}
		}
		for _, field := range reflect.VisibleFields(reflect.TypeFor[Settings]()) {
			is := reflect.ValueOf(given).FieldByIndex(field.Index)
			assert.Equal(t, nameOf(field) == s.Name, !is.IsNil(), "%s sets %s", s.Name, field.Name)
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Settings]()) {
		assert.True(t, declared[nameOf(field)], field.Name)
	}
}

var words = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// nameOf returns the name of a field on the command line.
func nameOf(field reflect.StructField) string {
	if name := field.Tag.Get("name"); name != "" {
		return name
	}
	return strings.ToLower(words.ReplaceAllString(field.Name, "$1-$2"))
}
