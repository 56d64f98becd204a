package intake

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/counter"
	"footfall/visit"
	"footfall/visit/tag"
)

// Calls take turns, and a call that waits too long for its turn is refused.
func TestCallsTakeTurns(t *testing.T) {
	t.Parallel()
	d := NewDesk()
	d.wait = time.Millisecond
	for range callsAtOnce {
		d.turns <- struct{}{}
	}
	_, _, err := d.Count(t.Context(), Call{Body: strings.NewReader("[")})
	var verr *visit.Error
	require.ErrorAs(t, err, &verr)
	assert.Equal(t, visit.Unavailable, verr.Kind)
	assert.Positive(t, verr.RetryAfter)

	d.wait = time.Hour
	left, leave := context.WithCancel(t.Context())
	leave()
	_, _, err = d.Count(left, Call{Body: strings.NewReader("[")})
	require.ErrorIs(t, err, context.Canceled)

	<-d.turns
	_, _, err = d.Count(t.Context(), Call{Body: strings.NewReader("[")})
	require.ErrorContains(t, err, "line 1, column 2")
	_, _, err = d.Count(t.Context(), Call{Body: strings.NewReader("[")})
	require.ErrorContains(t, err, "line 1, column 2", "the turn before is over")

	full, free := make(chan struct{}, 1), make(chan struct{}, 1)
	full <- struct{}{}
	d.wait = time.Millisecond
	_, _, err = d.Count(t.Context(), Call{Body: strings.NewReader("["), Turns: full})
	require.ErrorAs(t, err, &verr, "of a database that does not answer")
	assert.Equal(t, tooMany().Error(), verr.Error())
	assert.Len(t, d.turns, callsAtOnce-1, "which takes none of the others' turns")
	d.wait = time.Hour
	_, _, err = d.Count(t.Context(), Call{Body: strings.NewReader("["), Turns: free})
	require.ErrorContains(t, err, "line 1, column 2")
	assert.Empty(t, free, "the turn is over")
	d.turns <- struct{}{}
	_, _, err = d.Count(left, Call{Body: strings.NewReader("["), Turns: free})
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, free, "nobody keeps a turn of one kind who gets none of the other")
	<-d.turns
	assert.EqualValues(t, mostReceived, d.bodies.free, "all memory is there again")
	assert.Empty(t, d.bodies.all)
}

// However large a body is after decompression, and whatever its Content-Length, a call takes no more memory than its
// limits. Not parallel, because it measures all allocations.
func TestMemoryOfACall(t *testing.T) {
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	for range 64 {
		_, err := w.Write(make([]byte, 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	for name, call := range map[string]Call{
		"packed":               {Body: &bomb, Gzip: true},
		"endless":              {Body: endless{}},
		"said to be very long": {Body: strings.NewReader("["), Length: 1 << 40},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := NewDesk().Count(t.Context(), call)
		runtime.ReadMemStats(&after)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(12*MostBytes), name)
		var verr *visit.Error
		if name != "said to be very long" && assert.True(t, errors.As(err, &verr), "%s: %v", name, err) {
			assert.Equal(t, visit.TooLarge, verr.Kind, name)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// The chunks of a call have similar sizes, however many visits are left, and are at most a quarter larger than the
// best size.
func TestShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ left, best, want int }{
		{1000, 500, 500}, {1000, 450, 500}, {1000, 400, 500}, {1000, 399, 334}, {1000, 4000, 1000}, {124, 100, 124}, {126, 100, 63}, {1, 100, 1},
		{10_000, 100, 125},
	} {
		assert.Equal(t, c.want, chunkSize(c.left, c.best), "%d left, %d are best", c.left, c.best)
	}
}

func TestReadItems(t *testing.T) {
	t.Parallel()
	a := counter.Item{URI: "http://a/", IP: "192.0.2.1"}
	for name, c := range map[string]struct {
		text  string
		lines bool
		want  []counter.Item
	}{
		"none":              {`[]`, false, nil},
		"none, with spaces": {" [ \n ]\r\n", false, nil},
		"one":               {`[{"uri":"http://a/","ip":"192.0.2.1"}]`, false, []counter.Item{a}},
		"spread":            {"\t[ {\n \"ip\" :\r\n\"192.0.2.1\" , \"uri\": \"http://a/\" } , { } ]", false, []counter.Item{a, {}}},
		"all fields": {`[{"visitor":"v","agent":"a","uri":"u","id":"1","country":"DE","referrer":"http://b/","language":"de"}]`, false,
			[]counter.Item{{Visitor: "v", Agent: "a", URI: "u", ID: "1", Referrer: "http://b/", Language: "de", Country: "DE"}}},
		"tags": {`[{"tags":{"plan":"pr\u006f","age":""}},{"tags":{}}]`, false,
			[]counter.Item{{Tags: tag.Set{{Name: "plan", Value: "pro"}, {Name: "age"}}}, {}}},
		"empty ones": {`[{"agent":"","referrer":"","language":"","country":""}]`, false, []counter.Item{{}}},
		"a time": {`[{"at":"2019-06-29T14:00:00+02:00"},{}]`, false,
			[]counter.Item{{At: time.Date(2019, 6, 29, 14, 0, 0, 0, time.FixedZone("", 7200))}, {}}},
		"escapes":  {`[{"uri":"\u0061\/\"\\\n\ud83d\ude00","ip":"é"}]`, false, []counter.Item{{URI: "a/\"\\\n😀", IP: "é"}}},
		"no lines": {"", true, nil},
		"lines":    {"{\"uri\":\"http://a/\",\"ip\":\"192.0.2.1\"}\r\n\n  {}\n{\"agent\":\"x\"}", true, []counter.Item{a, {}, {Agent: "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readItems(&visitForm, c.text, c.lines)
			require.NoError(t, err)
			assert.Equal(t, c.want, got.list)
			assert.Empty(t, got.problems)
		})
	}
}

// An error in one visit is reported in that visit's result, and the other visits are read.
func TestWrongItems(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`7`:                          "it is not an object",
		`null`:                       "it is not an object",
		`[{"uri":"x"}]`:              "it is not an object",
		`"x\"]"`:                     "it is not an object",
		`{"uri":7}`:                  "uri: it is not a string",
		`{"ip":null,"uri":"x"}`:      "ip: it is not a string",
		`{"referrer":null}`:          "referrer: it is not a string",
		`{"language":["de"]}`:        "language: it is not a string",
		`{"country":49}`:             "country: it is not a string",
		`{"tags":"pro"}`:             "tags: they are not an object",
		`{"tags":{"plan":[{}]}}`:     `tags: "plan" is not a string`,
		`{"tags":{"a":"","a":""}}`:   `tags: "a" is given twice`,
		`{"tags":{},"tags":{}}`:      "tags: it is given twice",
		`{"uri":{"a":[1,{}]}}`:       "uri: it is not a string",
		`{"uri":""}`:                 "uri: it is empty",
		`{"uri":"x","uri":"y"}`:      "uri: it is given twice",
		`{"uri":1,"uri":"y"}`:        "uri: it is not a string",
		`{"URI":"x"}`:                `"URI" is not a field`,
		`{"at":1561809600}`:          "at: it is not a string",
		`{"at":"2019-06-29 12:00"}`:  "at: \"2019-06-29 12:00\" is not a time",
		`{"at":""}`:                  "at: it is empty",
		`{"url":["a","b"],"ip":"x"}`: `"url" is not a field`,
	} {
		for _, lines := range []bool{false, true} {
			whole := "[{}, " + text + " ,{\"uri\":\"z\"}]"
			if lines {
				whole = "{}\n" + text + "\n{\"uri\":\"z\"}\n"
			}
			got, err := readItems(&visitForm, whole, lines)
			require.NoError(t, err, text)
			require.Len(t, got.list, 3, text)
			assert.Contains(t, got.problems[1], want, text)
			assert.Len(t, got.problems, 1, text)
			assert.Equal(t, "z", got.list[2].URI, text)
		}
	}
}

// The error for an unreadable body names the position of the problem.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		lines bool
		want  string
	}{
		{"", false, "line 1, column 1: a list of visits should begin here with ["},
		{"{}", false, "line 1, column 1: a list of visits"},
		{"[", false, "line 1, column 2: it is incomplete"},
		{"[{}", false, "line 1, column 4: a comma or ] should follow the visit"},
		{"[{},]", false, "line 1, column 5: this is not JSON"},
		{"[{} {}]", false, "line 1, column 5: a comma or ]"},
		{"[{}]\n\n x", false, "line 3, column 2: nothing should follow the list of visits"},
		{"[]]", false, "line 1, column 3: nothing should follow"},
		{"[\n{\"uri\":\"é\" \"ip\":\"x\"}]", false, "line 2, column 12: a comma or } should follow the value"},
		{"[{\"uri\"}]", false, "line 1, column 8: a colon should follow"},
		{"[{uri:1}]", false, "line 1, column 3: the name of a field should begin here"},
		{"[{\"uri\":\"a", false, "line 1, column 9: this string is not closed"},
		{"[{\"uri\":\"a\\", false, "line 1, column 9: this string is not closed"},
		{"[{\"uri\":\"a\\x\"}]", false, "line 1, column 9: this string has a \\"},
		{"[{\"uri\":\"a\nb\"}]", false, "line 1, column 11: a string has a control character here: write it as \\u000a"},
		{"[{\"uri\":\"a\x00\"}]", false, "column 11: a string has a control character here: write it as \\u0000"},
		{"[{\"uri\":01}]", false, "line 1, column 10"},
		{"[{\"uri\":tru}]", false, "line 1, column 12: this is not JSON"},
		{"[{\"uri\":[1,}]", false, "line 1, column 12: this is not JSON"},
		{"[{\"uri\":[1,", false, "line 1, column 12: it is incomplete"},
		{"[{\"uri\":\"\xff\"}]", false, "line 1, column 10: it is not valid UTF-8"},
		{"{}\n{\"uri\":\n\"x\"}", true, "line 2, column 8: it is incomplete"},
		{"{} {}", true, "line 1, column 4: nothing should follow the visit on its line"},
		{"[{}]\n", true, ""},
		{"{},\n{}", true, "line 1, column 3: nothing should follow"},
		{"{}\n\n{\"uri\":\"x}", true, "line 3, column 8: this string is not closed"},
	} {
		_, err := readItems(&visitForm, c.text, c.lines)
		if c.want == "" {
			assert.NoError(t, err, c.text)
			continue
		}
		if assert.Error(t, err, c.text) {
			assert.Contains(t, err.Error(), c.want, c.text)
			var verr *visit.Error
			require.ErrorAs(t, err, &verr)
			assert.Equal(t, visit.Invalid, verr.Kind)
		}
	}
	_, err := readItems(&visitForm, "["+strings.Repeat("{},", MostItems)+"{}]", false)
	require.ErrorContains(t, err, fmt.Sprintf("more than %d visits", MostItems))
	all, err := readItems(&visitForm, "["+strings.Repeat("{},", MostItems-1)+"{}]", false)
	require.NoError(t, err)
	require.Len(t, all.list, MostItems)
}

// Accepted bodies are JSON, and encoding/json reads the same from them.
func FuzzReadItems(f *testing.F) {
	for _, text := range []string{`[{"uri":"http://a/","ip":"192.0.2.1"},{"visitor":"\u0041"}]`, `[1,null,{"uri":[{"a":1e5}],"x":"\\"}]`,
		"[{}\n]", `[{"uri":"`, `[{"tags":{"plan":"pro","\u0061":""}}]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := readItems(&visitForm, text, false)
		if err != nil {
			require.Regexp(t, `line \d+, column \d+: |more than`, err.Error())
			return
		}
		require.True(t, utf8.ValidString(text))
		var want []json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(text), &want))
		require.Len(t, got.list, len(want))
		for i, item := range want {
			if got.problems[i] != "" {
				continue
			}
			var fields map[string]string
			var object struct{ Tags map[string]string }
			var members map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(item, &members))
			delete(members, "tags")
			without, _ := json.Marshal(members)
			require.NoError(t, json.Unmarshal(without, &fields))
			require.NoError(t, json.Unmarshal(item, &object))
			for _, given := range got.list[i].Tags {
				require.Equal(t, object.Tags[given.Name], given.Value)
			}
			require.Len(t, got.list[i].Tags, len(object.Tags))
			got.list[i].Tags = nil
			at, _ := time.Parse(time.RFC3339, fields["at"])
			require.Equal(t, counter.Item{URI: fields["uri"], IP: fields["ip"], Visitor: fields["visitor"], Agent: fields["agent"], ID: fields["id"],
				At:       at,
				Referrer: fields["referrer"], Language: fields["language"], Country: fields["country"]}, got.list[i])
		}
	})
}
