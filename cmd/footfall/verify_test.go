package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Verifying beside the service that counts, what it prints, and how it ends.
func TestVerify(t *testing.T) {
	t.Parallel()
	database := withDemo(t)
	s := serve(t, database)
	for i := range 30 {
		status, body := get(fmt.Sprintf("%s/visit?app=demo&ip=192.0.2.%d&uri=http://a%d.example/%d", s.url, i%7, i%2, i%3))
		require.Equal(t, http.StatusOK, status, body)
	}

	sound := footfall(t, "verify", database)
	assert.Zero(t, sound.code, sound.stderr)
	assert.Regexp(t, `(?m)^PROMISE +RESTS ON +CHECKED +VIOLATIONS$`, sound.stdout)
	assert.Regexp(t, `(?m)^ranks are exactly 1\.\.uv +rows of visitors and erased visitors +8 targets +0$`, sound.stdout)
	assert.Regexp(t, `(?m)^8 targets, 44 visitors \(0 of them erased\), 44 visits, 8 days \(0 rest on daily numbers alone\): 0 `+
		`violations, in [\d.]+m?s$`, sound.stdout)
	assert.Regexp(t, `(?m)^ +\d+\.\d s  ranks: 8 targets, 0 violations$`, sound.stderr)
	assert.NotContains(t, sound.stderr, "\r", "nobody watches")

	well(t, "psql", database, "--", "-c", "UPDATE counters SET hot = hot + 5 WHERE page_id = (SELECT id FROM pages WHERE uri = "+
		"'a0.example/0')")
	damaged := footfall(t, "verify", database)
	assert.Equal(t, 1, damaged.code)
	assert.Contains(t, damaged.stderr, "footfall: verify: 2 violations: what is listed does not hold")
	assert.Regexp(t, `(?m)^  demo +a0\.example/0 +- +the sum of days' hot: 5, but hot: 10$`, damaged.stdout)
	assert.Regexp(t, `(?m)^  demo +a0\.example +- +hot: 15, but the sum over its pages: 20$`, damaged.stdout)

	inJSON := footfall(t, "verify", database, "--json", "--app=demo")
	assert.Equal(t, 1, inJSON.code)
	var proof struct {
		Targets, Violations int
		Promises            []struct {
			Name       string
			Violations int
			Offenders  []struct{ App, Target, Problem string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(inJSON.stdout), &proof), inJSON.stdout)
	assert.Equal(t, 8, proof.Targets)
	assert.Equal(t, 2, proof.Violations)
	for _, p := range proof.Promises {
		assert.Len(t, p.Offenders, p.Violations, p.Name)
	}

	well(t, "psql", database, "--", "-c", "UPDATE days SET hot = hot + 1; INSERT INTO counters SELECT generate_series(1000, 1029), 0, 0, 0")
	assert.Contains(t, footfall(t, "verify", database).stdout, "\n  and 10 more\n")
	assert.NotContains(t, footfall(t, "verify", database, "--all").stdout, "more\n")

	for flag, says := range map[string]string{
		"--sample=0": "--sample: 0 is not a percentage", "--sample=101": "--sample: 101", "--sample=NaN": "--sample: NaN",
		"--jobs=0": "--jobs: 0",
	} {
		r := footfall(t, "verify", database, flag)
		assert.Equal(t, 2, r.code)
		assert.Contains(t, r.stderr, says)
	}
	unknown := footfall(t, "verify", database, "--app=nobody")
	assert.Equal(t, 1, unknown.code)
	assert.Contains(t, unknown.stderr, `app: there is no app "nobody"`)
	nothing := footfall(t, "verify", database, "--sample=0.001", "--seed=7")
	assert.Equal(t, exitNothing, nothing.code, "what was not checked is not proved")
	assert.Contains(t, nothing.stdout, "0 targets, ")
	assert.Contains(t, nothing.stderr, "nothing was checked")
}
