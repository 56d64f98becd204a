package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The machine's zone is the one that it names in some way; none that the tables could not have.
func TestMachineZone(t *testing.T) {
	link := filepath.Join(t.TempDir(), "localtime")
	for _, c := range []struct{ tz, link, want string }{
		{"", "/usr/share/zoneinfo/Europe/Berlin", "UTC"}, // an empty TZ says UTC
		{"Asia/Shanghai", "/usr/share/zoneinfo/Europe/Berlin", "Asia/Shanghai"},
		{":America/New_York", "", "America/New_York"},
		{"/usr/share/zoneinfo/Asia/Tokyo", "", "Asia/Tokyo"},
		{"CET-1CEST,M3.5.0,M10.5.0/3", "", "UTC"}, {"Local", "", "UTC"}, {"../../etc/passwd", "", "UTC"},
		{"-", "/usr/share/zoneinfo/Europe/Berlin", "Europe/Berlin"}, // -: it is not set
		{"-", "../usr/share/zoneinfo/posix/Europe/Paris", "Europe/Paris"},
		{"-", "/var/db/timezone/zoneinfo/America/Argentina/Salta", "America/Argentina/Salta"},
		{"-", "/etc/zoneinfo/Etc/UTC", "UTC"}, {"-", "/nowhere/else", "UTC"}, {"-", "", "UTC"},
	} {
		t.Setenv("TZ", c.tz)
		if c.tz == "-" {
			require.NoError(t, os.Unsetenv("TZ"))
		}
		_ = os.Remove(link)
		if c.link != "" {
			require.NoError(t, os.Symlink(c.link, link))
		}
		assert.Equal(t, c.want, machineZone(link), c)
	}
}

// An app has the machine's days unless it is told others, says so at once, and takes others until
// something is counted.
func TestZoneIsTold(t *testing.T) {
	t.Parallel()
	url := withDemo(t)
	add := func(name string, tz ...string) string {
		r := footfallWith(t, append([]string{"TZ=Asia/Shanghai"}, tz...), "", "app", "add", name, "--access=open", "--visitor=address", url)
		require.Zero(t, r.code, r.stderr)
		return r.stdout
	}
	assert.Regexp(t, `^added app shop, which counts days of Asia/Shanghai, the time zone of this machine\. `+
		`The first visit fixes that; until then this changes it:\n\n  \S+ app set shop --tz ZONE\n`, add("shop"))
	assert.Regexp(t, `^added app bare, which counts days of UTC, since this machine tells no other time zone\. `, add("bare", "TZ="))
	assert.Contains(t, well(t, "app", "add", "told", "--access=open", "--visitor=address", "--tz=Asia/Tokyo", url),
		"added app told, which counts days of Asia/Tokyo. The first visit fixes that")

	well(t, "app", "set", "shop", "--tz=Europe/Berlin", url)
	s := serve(t, url)
	status, body := get(s.url + "/visit?app=shop&ip=192.0.2.1&uri=http://a.example/")
	require.Equal(t, 200, status, body)
	refused := footfall(t, "app", "set", "shop", "--tz=Asia/Shanghai", url)
	assert.Equal(t, exitUsage, refused.code)
	assert.Contains(t, refused.stderr, "has counted days of Europe/Berlin, which stay what they are")
	assert.Zero(t, s.stop())
	assert.Contains(t, well(t, "app", "list", url), "shop  open    address  Europe/Berlin ")
}
