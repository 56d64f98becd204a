package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/status"
)

// It is asked beside a service, and without one.
func TestStatus(t *testing.T) {
	t.Parallel()
	data := usedData(t)
	s := serve(t, "--data", data)
	code, _ := get(s.url + "/visit?app=demo&ip=192.0.2.1&uri=http://example.com/")
	require.Equal(t, http.StatusOK, code)
	read := func() (found status.Status) {
		r := footfall(t, "status", "--json", "--data", data)
		require.NoError(t, json.Unmarshal([]byte(r.stdout), &found), r.stderr)
		others := []string{}
		for _, warning := range found.Warnings { // how full the disk is here does not matter
			if !strings.HasPrefix(warning, "the disk of the data has ") {
				others = append(others, warning)
			}
		}
		if len(found.Warnings) > 0 {
			assert.Equal(t, exitWarned, r.code)
			assert.Contains(t, r.stderr, "there are warnings")
		} else {
			assert.Zero(t, r.code, r.stderr)
		}
		found.Warnings = others
		return found
	}
	running := read()
	assert.Len(t, running.Instances, 1)
	assert.Empty(t, running.Warnings)
	assert.Equal(t, int64(1), running.Apps[0].Hot)
	assert.NotNil(t, running.Disk)
	text := footfall(t, "status", "--data", data).stdout
	assert.Regexp(t, `(?m)^APP .*\ndemo +1 +\d{8} +1 +35 days$`, text)
	assert.Regexp(t, `(?m)^INSTANCE .*\nfootfall dev `+regexp.QuoteMeta(strings.TrimPrefix(s.url, "http://"))+` \S+ +- +\d{4}-`, text,
		"which one it is")

	require.Zero(t, s.stop())
	assert.NotContains(t, text, "pg_read_all_stats")
	stopped := read()
	assert.Empty(t, stopped.Instances)
	require.Len(t, stopped.Warnings, 1)
	assert.Contains(t, footfall(t, "status", "--data", data).stdout, "\nWARNING: "+stopped.Warnings[0])
}

// What there is nothing of has no table, and what is not told has a reason.
func TestStatusSaysNothingInVain(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	require.NoError(t, printStatus(&text, &status.Status{Instances: []status.Instance{{Name: "footfall dev"}}}))
	assert.NotContains(t, text.String(), "TABLE")
	assert.Regexp(t, `(?m)^footfall dev +- +-\n\(of sessions of other roles a member of pg_read_all_stats is told more\)$`, text.String())
}

func TestStatusOfTheInbox(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	printInbox(&text, &status.Inbox{})
	assert.Empty(t, text.String())
	oldest := time.Date(2026, 6, 29, 12, 0, 0, 0, time.UTC)
	printInbox(&text, &status.Inbox{Waiting: 7, Aside: 2, Oldest: &oldest})
	assert.Equal(t, "inbox: visits that wait to be counted: 7, the first since 2026-06-29T12:00:00Z; of apps that are locked for now: 2\n",
		text.String())
}
