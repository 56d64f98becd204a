package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/account"
	"footfall/counter/desk"
	"footfall/db"
	"footfall/db/dbtest"
)

// The shell says who may do what, and never makes the first account.
func TestAccounts(t *testing.T) {
	t.Parallel()
	database := withDemo(t)
	_, at, _ := strings.Cut(database, "=")
	all := account.Open(dbtest.Open(t, at, db.Options{}))
	first := footfall(t, "account", "add", "Ann", database)
	assert.Equal(t, exitUsage, first.code)
	assert.Contains(t, first.stderr, "the first one is made in a browser: `footfall start-link` prints the address")
	const public = "--public-url=https://count.example"
	links := regexp.MustCompile(`^https://count\.example/start/([A-Za-z0-9_-]{43})\n$`)
	follow := func(printed, name, password string) {
		t.Helper()
		link := links.FindStringSubmatch(printed)
		require.NotNil(t, link, printed)
		_, err := all.Follow(t.Context(), link[1], name, password, "a test")
		require.NoError(t, err)
	}
	container := footfallWith(t, []string{published + "=127.0.0.1:9090"}, "", "start-link", database)
	assert.Regexp(t, `^http://127\.0\.0\.1:9090/start/`, container.stdout, "where the compose file publishes its port")
	assert.Empty(t, container.stderr)
	follow(well(t, "start-link", public, database), "Olga", desk.Password)
	again := footfall(t, "start-link", public, database)
	assert.Equal(t, exitUsage, again.code)
	assert.Contains(t, again.stderr, "sign in at https://count.example/enter")

	link := well(t, "account", "add", "Ann Smith", "--look=demo", public, database)
	list := func() string { return well(t, "account", "list", database) }
	assert.Regexp(t, `(?m)^1 +Olga +everything +everything +password +\d{4}-.* UTC +-$`, list())
	assert.Regexp(t, `(?m)^2 +Ann Smith +demo +- +- +- +\d{4}-.* UTC$`, list())
	follow(link, "", desk.Password)
	assert.Regexp(t, `(?m)^2 +Ann Smith +demo +- +password +\d{4}-.* UTC +-$`, list())
	well(t, "account", "set", "ann smith", "--change", "demo", database)
	assert.Regexp(t, `(?m)^2 +Ann Smith +demo +demo +password `, list())
	for range 10 { // in whichever order they are given
		well(t, "account", "set", "2", "--change", "demo", "--look", "demo", database)
		require.Regexp(t, `(?m)^2 +Ann Smith +demo +demo +password `, list())
	}
	well(t, "account", "set", "2", "--hide", "demo", database)
	assert.Regexp(t, `(?m)^2 +Ann Smith +- +- +password `, list())
	follow(well(t, "account", "link", "Ann Smith", public, database), "", "eight trombones")
	_, err := all.SignIn(t.Context(), "Ann Smith", desk.Password, "a test")
	assert.Error(t, err)

	for says, args := range map[string][]string{
		"there is none that is called \"Bob\"":  {"link", "Bob"},
		"it is the only owner":                  {"remove", "Olga"},
		"it is the only owner, without":         {"set", "OLGA", "--no-owner"},
		"there is no app \"none\"":              {"set", "Ann Smith", "--look", "none"},
		"\"olga\" is another account's already": {"add", "olga"},
		"its letters are of several scripts":    {"add", "Оlga"},
	} {
		r := footfall(t, append(append([]string{"account"}, args...), database)...)
		assert.NotZero(t, r.code, says)
		assert.Contains(t, r.stderr, says)
	}
	well(t, "account", "set", "Ann Smith", "--owner", database)
	well(t, "account", "remove", "Olga", database)
	assert.NotContains(t, list(), "Olga")
	_, err = all.SignIn(t.Context(), "Olga", desk.Password, "a test")
	assert.Error(t, err)
}
