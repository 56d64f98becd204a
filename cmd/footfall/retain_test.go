package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"footfall/counter"
	"footfall/counter/desk"
	"footfall/db/dbtest"
)

// What an operator does: say for how long, look what would go, and let it go.
func TestRetain(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	url := "--database-url=" + database
	well(t, "app", "add", "shop", "--visitor=address", "--access=open", "--retain-days=10", "--forget-days=20", url)
	well(t, "app", "add", "other", "--visitor=address", "--access=open", "--retain-days=0", url)
	list := well(t, "app", "list", url)
	assert.Regexp(t, `(?m)^shop .* public-counts=read,retain-days=10,forget-days=20$`, list)
	assert.Regexp(t, `(?m)^other .* public-counts=read,retain-days=0$`, list)
	refused := footfall(t, "app", "set", "shop", "--retain-days=21", url)
	assert.Equal(t, exitUsage, refused.code)
	assert.Equal(t, "footfall: --forget-days: visits would be kept for longer than their visitors, and name them: give --retain-days from "+
		"1 to 20, or --forget-days 0\n", refused.stderr)
	assert.Equal(t, "there is nothing to delete or forget\n", well(t, "retain", url))

	countLongAgo(t, database)
	dry := well(t, "retain", "--dry-run", url)
	assert.Regexp(t, `^days that are over, would be summed up for good: \d+ \(20190628 to 20190708\)
visits that would be deleted:
DAY       APP              VISITS  FREED
20190628  \(the whole day\)  -       \d+KiB
20190629  \(the whole day\)  -       \d+KiB
20190629  shop             2       with it
20190630  shop             2       other apps keep the day
(?:2019070\d  \(the whole day\)  -       \d+KiB
)+visitors that would be forgotten, one for each page or site:
APP   VISITORS  NOT SEEN SINCE
shop  2         20\d{6}
$`, dry)
	assert.Equal(t, dry, well(t, "retain", "--dry-run", url), "nothing has changed")
	done := well(t, "retain", url)
	assert.Equal(t, strings.NewReplacer("over, would be summed", "over, summed", "would be", "were").Replace(dry), done)
	assert.Equal(t, "there is nothing to delete or forget\n", well(t, "retain", url))
}

// countLongAgo counts for shop on two days, and on the second for another app too.
func countLongAgo(t *testing.T, url string) {
	t.Helper()
	for day, apps := range [][]string{{"shop"}, {"shop", "other"}} {
		d := desk.On(t, url, desk.Options{Began: time.Date(2019, 6, 29+day, 12, 0, 0, 0, time.UTC)})
		for _, app := range apps {
			d.CountAs(t, counter.Request{App: app, IP: "192.0.2.1", URI: "http://a.example/"})
		}
		d.Close()
	}
}
