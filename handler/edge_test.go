package handler

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/visit"
)

func TestAnswerIsWhatEncodingJSONWrites(t *testing.T) {
	t.Parallel()
	for _, a := range []visit.Answer{
		{},
		{Site: counts(1, 2, 3, 4), Page: counts(5, 6, 7, 8)},
		{Site: counts(math.MaxInt64, math.MinInt64, -1, 10), Page: counts(0, 99, 100, 1<<40)},
	} {
		want, err := json.Marshal(a)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(appendAnswer(nil, a)))
	}
}

// If net/url finds each field at most once and with a value, our parser finds the same.
func FuzzReadQuery(f *testing.F) {
	for _, seed := range []string{
		"", "app=demo&ip=192.0.2.1&uri=http%3A%2F%2Fa.example%2F%3Fq%3D1", "app=a+b&uri=%E2%82%AC&x=%zz", "&&=&app", "%61pp=x&+=+",
		"uri=a=b==&ip",
		"app=a&app=b", "uri=%", "app=;", "a%70p=1", "uri=%00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got, err := readQuery(query)
		err = errors.Join(err, got.parseErr)
		if strings.Contains(query, ";") {
			return // net/url drops such parameters
		}
		values, bad := url.ParseQuery(query)
		once := true
		for _, name := range []string{"app", "ip", "visitor", "uri", "id", "at"} {
			if v := values[name]; len(v) > 1 || len(v) == 1 && v[0] == "" {
				once = false
			}
		}
		switch {
		case !once:
			require.Error(t, err)
		case bad != nil:
			if err == nil { // the fault is not in our fields, and these are complete
				for _, name := range []string{"app", "ip", "visitor", "uri", "id", "at"} {
					require.Equal(t, values.Get(name), got.find(name).value)
				}
			}
		default:
			require.NoError(t, err)
			for _, name := range []string{"app", "ip", "visitor", "uri", "id", "at"} {
				require.Equal(t, field{values.Get(name), values.Has(name)}, *got.find(name))
			}
		}
	})
}

func FuzzReadJSON(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"app":"a","ip":"b","uri":"c"}`, `{"app":"a","app":"b"}`, `{"APP":"a"}`, `{"uri":"\u0041\ud800"}`, `{"app":1}`, `{"app":"a"}x`,
		`{"app" "a"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		got, err := readJSON([]byte(body), oneVisit)
		if err != nil || got.parseErr != nil {
			return
		}
		var want map[string]string
		require.NoError(t, json.Unmarshal([]byte(body), &want), "accepted bodies are JSON")
		for _, name := range []string{"app", "ip", "visitor", "uri", "id", "at"} {
			value, given := want[name]
			require.Equal(t, field{value, given}, *got.find(name))
			delete(want, name)
		}
		require.Empty(t, want)
	})
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{
		0: "1", 1: "1", time.Second: "1", time.Second + 1: "2", 90 * time.Second: "90", -time.Second: "1",
	} {
		assert.Equal(t, want, retryAfter(wait), wait)
	}
}

// broken serves one route with this handler, which fails, and returns the answer and the log.
func broken(t *testing.T, handle echo.HandlerFunc) (answer, string) {
	t.Helper()
	log := new(bytes.Buffer)
	s := newService(Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	s.routes = []route{{"/broken", []string{http.MethodGet}, handle}}
	recorder := httptest.NewRecorder()
	s.echo(newMetrics(prometheus.NewRegistry())).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/broken?uri=http://secret.example/",
		http.NoBody))
	return answer{recorder.Code, recorder.Header(), recorder.Body.String()}, log.String()
}

func TestErrors(t *testing.T) {
	t.Parallel()
	cause := errors.New("SQLSTATE 42P01")
	for _, c := range []struct {
		err    error
		status int
		says   string
		logged int
	}{
		{&visit.Error{Kind: visit.Invalid, Text: visit.Textf("ip: no"), Err: cause}, 400, "ip: no", 0},
		{&visit.Error{Kind: visit.NotFound, Text: visit.Textf("app: no")}, 404, "app: no", 0},
		{&visit.Error{Kind: visit.Forbidden, Text: visit.Textf("uri: no")}, 403, "uri: no", 0},
		{&visit.Error{Kind: visit.Unavailable, Text: visit.Textf("later"), Err: cause}, 503, "later", 1},
		{&visit.Error{Kind: visit.Unavailable, Text: visit.Textf("later"), Err: cause, Logged: true}, 503, "later", 0},
		{&visit.Error{Kind: visit.Lost, Text: visit.Textf("counted"), Err: cause}, 500, "counted", 1},
		{&visit.Error{Kind: 99, Text: visit.Textf("unheard of"), Err: cause}, 500, "internal error", 1},
		{cause, 500, "internal error", 1},
		{echo.NewHTTPError(http.StatusBadGateway, "inside"), 500, "internal error", 1},
		{echo.NewHTTPError(http.StatusTeapot, "short and stout"), 418, "short and stout", 0},
	} {
		a, log := broken(t, func(echo.Context) error { return c.err })
		assert.Equal(t, c.status, a.status, c.err)
		assert.Equal(t, c.says, a.error(t))
		assert.NotContains(t, a.body, "SQLSTATE")
		assert.Equal(t, c.logged, strings.Count(log, "\n"), log)
		assert.NotContains(t, log, "secret")
		assert.Equal(t, c.status == 503, a.header.Get("Retry-After") != "")
		if c.logged > 0 {
			assert.Contains(t, log, c.err.Error())
		}
	}
}

func TestPanicIsAnswered(t *testing.T) {
	t.Parallel()
	a, log := broken(t, func(echo.Context) error { panic("at the wrong moment") })
	assert.Equal(t, http.StatusInternalServerError, a.status)
	assert.JSONEq(t, `{"error":"internal error"}`, a.body)
	assert.Equal(t, 1, strings.Count(log, "a handler panicked"))
	assert.Contains(t, log, "at the wrong moment")
	assert.Contains(t, log, "edge_test.go", "the stack")
}
