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

// Whatever the shell can set of an app, pages and programs can, too.
func TestEverySettingIsDeclared(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{"ignore-file": true} // which is read into ignore
	for _, s := range Declared {
		declared[s.Name] = true
		var given Settings
		_ = s.Of(&db.App{})
		err := s.Give(&given, []string{"1"})
		require.NoError(t, err, s.Name)
		assert.NotEqual(t, Settings{}, given, s.Name)
		if !s.Many {
			assert.ErrorContains(t, s.Give(&given, []string{"1", "1"}), s.Name+": it is one value", s.Name)
		}
	}
	words := regexp.MustCompile(`([a-z0-9])([A-Z])`)
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Settings]()) {
		name := field.Tag.Get("name")
		if name == "" {
			name = strings.ToLower(words.ReplaceAllString(field.Name, "$1-$2"))
		}
		assert.True(t, declared[name], name)
	}
}
