package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db/dbtest"
)

const rulesFile = "../../docs/prometheus/rules.yml"

var (
	alertNames = regexp.MustCompile(`- alert: (\w+)`)
	selectors  = regexp.MustCompile(`\b((?:footfall|go|process)_\w+)(\{[^}]*\})?`)
	labelled   = regexp.MustCompile(`(\w+)="(\w+|/\w+)"`)
)

// serviceExpressions returns the Prometheus queries of the service's dashboard.
func serviceExpressions(t *testing.T) (list []string) {
	t.Helper()
	for _, panel := range readDashboard(t, "service").Panels {
		for _, target := range panel.Targets {
			list = append(list, target.Expr)
		}
	}
	require.NotEmpty(t, list)
	return list
}

// Each metric used by an alarm or the dashboard exists in a new service or consumer, with the labels in the query. Otherwise
// Prometheus would not notice the metric's first increase.
func TestWatchedMetricsExist(t *testing.T) {
	t.Parallel()
	data := usedData(t)
	s := serve(t, "--data", data)
	status, body := get(s.url + "/visit?app=demo&ip=192.168.0.1&uri=http://hhui.top/home")
	require.Equal(t, http.StatusOK, status, body)
	b := newBroker(t)
	b.send(20)
	consumes := dbtest.FreeAddress(t)
	c := consuming(t, b.url, "--app=demo", "--admin-addr="+consumes, "--data", data)
	_, shown := get(s.admin + "/metrics")
	eventually(t, "messages are counted", func() bool {
		_, more := get("http://" + consumes + "/metrics")
		if !strings.Contains(more, `footfall_queue_behind{part="0"}`) {
			return false
		}
		assert.Contains(t, more, "footfall_build_info{")
		shown += more
		return true
	})
	ends(t, c)
	rules, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	names := 0
	shows := func(line string) bool { return regexp.MustCompile("(?m)^" + line).MatchString(shown) }
	for _, expr := range append(serviceExpressions(t), string(rules)) {
		for _, found := range selectors.FindAllStringSubmatch(expr, -1) {
			names++
			assert.True(t, shows(found[1]+`[{ ]`), "nobody shows %s", found[1])
			for _, label := range labelled.FindAllString(found[2], -1) {
				assert.True(t, shows(found[1]+`\{(.*,)?`+label+`[,}]`), "nobody shows %s", found[0])
			}
		}
	}
	assert.Greater(t, names, 40)
}

// Prometheus accepts the rules and the dashboard, and each rule fires when it should and not before.
func TestPrometheusRules(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	tests, err := os.ReadFile("../../docs/prometheus/rules_test.yml")
	require.NoError(t, err)
	for _, found := range alertNames.FindAllStringSubmatch(string(rules), -1) {
		assert.Contains(t, string(tests), `{alertname="`+found[1]+`"}`)
	}
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("no promtool found (scripts/install-deps promtool)")
	}
	var recorded strings.Builder
	recorded.WriteString("groups: [{name: dashboard, rules: [\n")
	for _, expr := range serviceExpressions(t) {
		quoted, err := json.Marshal(strings.ReplaceAll(expr, "$__rate_interval", "5m"))
		require.NoError(t, err)
		recorded.WriteString("{record: shown, expr: " + string(quoted) + "},\n")
	}
	recorded.WriteString("]}]\n")
	asked := filepath.Join(t.TempDir(), "dashboard.yml")
	require.NoError(t, os.WriteFile(asked, []byte(recorded.String()), 0o600))
	for _, args := range [][]string{{"check", "rules", rulesFile, asked}, {"test", "rules", "../../docs/prometheus/rules_test.yml"}} {
		said, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput()
		require.NoError(t, err, string(said))
	}
}

// An instance started with --require-standby makes all other instances require a standby, too, until an operator turns this
// off. Metrics show whether a standby is required, and the time of the last daily task.
func TestStandbyIsRequired(t *testing.T) {
	t.Parallel()
	database := withDemo(t) // on a server that waits for no standby
	refused := footfall(t, "standby", "require", "on", database)
	assert.Equal(t, 1, refused.code)
	assert.Contains(t, refused.stderr, "a synchronous standby is required, but the server does not wait for one "+
		"(synchronous_standby_names is empty): name the standby")
	visits := func(s *running) int {
		status, _ := get(s.url + "/visit?app=demo&ip=192.0.2.1&uri=http://one.example/")
		return status
	}
	usual := serve(t, database)
	assert.Equal(t, http.StatusOK, visits(usual))
	assert.NotContains(t, usual.said(), "synchronous standby")
	strict := serve(t, database, "--require-standby")
	for _, s := range []*running{usual, strict} {
		assert.Equal(t, http.StatusServiceUnavailable, visits(s))
	}
	assert.Contains(t, footfall(t, "app", "add", "blog", "--access=open", "--visitor=address", database).stderr,
		"a synchronous standby is required, but the server does not wait for one")
	eventually(t, "the standby is missed", func() bool { return metric(t, strict, "footfall_standby_away") == 1 })
	assert.Zero(t, metric(t, strict, "footfall_daily_task_timestamp_seconds"), "a fresh service has not done it")
	require.Zero(t, strict.stop())
	later := serve(t, database)
	assert.Contains(t, later.said(), "the tables require it, although --require-standby is not given")
	assert.Equal(t, http.StatusServiceUnavailable, visits(later))
	told := footfall(t, "status", database)
	assert.Equal(t, 4, told.code)
	assert.Contains(t, told.stdout, "; a synchronous standby is required\n")
	assert.Contains(t, told.stdout, "WARNING: a synchronous standby is required, but the server does not wait for one")
	assert.Contains(t, footfall(t, "status", "--json", database).stdout, `"standby_required": true`)

	well(t, "standby", "require", "off", database)
	assert.Equal(t, http.StatusOK, visits(later))
	assert.NotContains(t, footfall(t, "status", database).stdout, "synchronous")
	well(t, "retain", database)
	require.Zero(t, later.stop())
	later = serve(t, database)
	eventually(t, "the daily task is seen", func() bool {
		done := time.Unix(int64(metric(t, later, "footfall_daily_task_timestamp_seconds")), 0)
		return time.Since(done) > 0 && time.Since(done) < 36*time.Hour
	})
	assert.Zero(t, metric(t, later, "footfall_standby_away"))
}
