package logs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	commonLine   = `192.0.2.7 - - [10/Oct/2026:13:55:36 +0200] "GET /a?b=c HTTP/1.1" 200 2326`
	combinedLine = commonLine + ` "https://other.example/" "Mozilla/5.0 (X11; Linux x86_64)"`
	nginxLine    = `{"time_local":"10/Oct/2026:13:55:36 +0200","remote_addr":"192.0.2.7","request":"GET /a?b=c HTTP/1.1","status":"200",` +
		`"http_host":"blog.example","http_referer":"https://other.example/","http_user_agent":"Mozilla/5.0 (X11; Linux x86_64)"}`
	caddyLine = `{"level":"info","ts":1791633336.25,"logger":"http.log.access","msg":"handled request",` +
		`"request":{"remote_ip":"10.0.0.1","remote_port":"4","client_ip":"192.0.2.7","proto":"HTTP/2.0","method":"GET","host":"blog.example","uri":"/a?b=c","headers":{"Accept":["*/*"],"Referer":["https://other.example/"],"User-Agent":["Mozilla/5.0 (X11; Linux x86_64)"]},"tls":{"resumed":false}},"bytes_read":0,"user_id":"","duration":0.000929675,"size":10900,"status":200,"resp_headers":{"User-Agent":["none"],"status":["7"]}}`
	traefikLine = `{"ClientAddr":"192.0.2.7:5000","ClientHost":"192.0.2.7","DownstreamStatus":200,"OriginStatus":0,` +
		`"RequestAddr":"blog.example:8443","RequestHost":"blog.example","RequestMethod":"GET","RequestPath":"/a?b=c","StartUTC":"2026-10-10T11:55:36.25Z","time":"2026-10-10T11:55:39Z","level":"info","request_Referer":"https://other.example/","request_User-Agent":"Mozilla/5.0 (X11; Linux x86_64)"}`
)

const (
	w3cHeader = "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) cs-host " +
		"sc-status sc-substatus sc-win32-status time-taken"
	w3cLine = "2026-10-10 11:55:36 10.0.0.9 GET /a b=c 443 - 192.0.2.7 Mozilla/5.0+(X11;+Linux+x86_64) https://other.example/ blog.example " +
		"200 0 0 15"
	cloudFrontHeader = "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) " +
		"cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken"
	cloudFrontLine = "2026-10-10\t11:55:36\tFRA2-C1\t326\t192.0.2.7\tGET\td111111abcdef8.cloudfront.net\t/a\t200\thttps://other.example/\t" +
		"Mozilla/5.0%20(X11;%20Linux%20x86_64)\tb=c\t-\tHit\tk6WGMNkEzR5BEM==\tblog.example\thttps\t57\t0.086"
	albLine = `https 2026-10-10T11:55:36.250000Z app/blog/50dc6c495c0c9188 192.0.2.7:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 ` +
		`"GET https://blog.example:443/a?b=c HTTP/2.0" "Mozilla/5.0 (X11; Linux x86_64)" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 ` +
		`arn:aws:elasticloadbalancing:eu-central-1:123456789012:targetgroup/blog/73e2d6bc24d8a067 "Root=1-58337262-36d228ad5d99923122bbe354" ` +
		`"blog.example" "-" 0 2026-10-10T11:55:36.100000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-"`
	haproxyLine = `Oct 10 13:55:36 web1 haproxy[14389]: 192.0.2.7:33317 [10/Oct/2026:13:55:36.250] http-in static/srv1 10/0/30/69/109 ` +
		`200 2750 - - ---- 1/1/1/1/0 0/0 {blog.example} {} "GET /a?b=c HTTP/1.1"`
	ownFormat = `$remote_addr - $remote_user [$time_local] ${scheme}://$host$request_uri "$request_method" $status "$http_user_agent" ` +
		`rt=$request_time`
	ownLine = `192.0.2.7 - a user [10/Oct/2026:13:55:36 +0200] https://blog.example/a?b=c "GET" 200 ` +
		`"Mozilla/5.0 (X11; Linux x86_64)" rt=0.017`
)

// read is the expected content of a line.
type read struct {
	format                                       Format
	host, client, method, target, agent, referer string
	status                                       int
	tellsAgent                                   bool
}

// dockerLine returns a line in the format of Docker's json-file driver.
func dockerLine(line string) string {
	log, _ := json.Marshal(line + "\n")
	return `{"log":` + string(log) + `,"stream":"stdout","time":"2026-10-10T11:59:59.25Z"}`
}

func (l *Line) read() read {
	return read{l.Format, string(l.Host), string(l.Client), string(l.Method), string(l.Target), string(l.Agent), string(l.Referer), l.Status,
		l.HasAgent}
}

func TestParse(t *testing.T) {
	t.Parallel()
	const browser, before = "Mozilla/5.0 (X11; Linux x86_64)", "https://other.example/"
	second := time.Date(2026, 10, 10, 11, 55, 36, 0, time.UTC)
	quarter := second.Add(250 * time.Millisecond)
	p := NewParser("")
	for text, want := range map[string]struct {
		read
		at time.Time
	}{
		commonLine:                       {read{Common, "", "192.0.2.7", "GET", "/a?b=c", "", "", 200, false}, second},
		commonLine + " 0.017":            {read{Common, "", "192.0.2.7", "GET", "/a?b=c", "", "", 200, false}, second},
		combinedLine:                     {read{Combined, "", "192.0.2.7", "GET", "/a?b=c", browser, before, 200, true}, second},
		combinedLine + ` "10.0.0.9" 0.3`: {read{Combined, "", "192.0.2.7", "GET", "/a?b=c", browser, before, 200, true}, second},
		combinedLine + "\r":              {read{Combined, "", "192.0.2.7", "GET", "/a?b=c", browser, before, 200, true}, second},
		"blog.example " + commonLine: {read{CommonHost, "blog.example", "192.0.2.7", "GET", "/a?b=c", "", "", 200, false},
			second},
		"blog.example:443 " + combinedLine: {read{CombinedHost, "blog.example:443", "192.0.2.7", "GET", "/a?b=c", browser, before,
			200, true}, second},
		"203.0.113.1 " + combinedLine: {read{CombinedHost, "203.0.113.1", "192.0.2.7", "GET", "/a?b=c", browser, before, 200,
			true}, second},
		strings.Replace(commonLine, "- -", "- a b", 1): {read{Common, "", "192.0.2.7", "GET", "/a?b=c", "", "", 200, false}, second},
		`2001:db8::1 - - [10/Oct/2026:11:55:36 +0000] "GET / HTTP/2.0" 304 - "" ""`: {
			read{Combined, "", "2001:db8::1", "GET", "/", "", "", 304, true}, second},
		`192.0.2.7 - - [10/Oct/2026:11:55:36 +0000] "-" 408 0`: {
			read{Common, "", "192.0.2.7", "", "", "", "", 408, false}, second},
		`192.0.2.7 - - [10/Oct/2026:11:55:36 +0000] "\x16\x03\x01" 400 0`: {
			read{Common, "", "192.0.2.7", "", "", "", "", 400, false}, second},
		`192.0.2.7 - - [10/Oct/2026:11:55:36 +0000] "GET /\xd0\x9f\"\\ b HTTP/1.1" 200 1 "-" "a \"b\""`: {
			read{Combined, "", "192.0.2.7", "GET", "/П\"\\ b", `a "b"`, "-", 200, true}, second},
		`192.0.2.7 - - [10/Oct/2026:11:55:36 +0000] "GET /old" 200 1`: {
			read{Common, "", "192.0.2.7", "GET", "/old", "", "", 200, false}, second},
		nginxLine:                {read{Nginx, "blog.example", "192.0.2.7", "GET", "/a?b=c", browser, before, 200, true}, second},
		dockerLine(combinedLine): {read{Combined, "", "192.0.2.7", "GET", "/a?b=c", browser, before, 200, true}, second},
		dockerLine(nginxLine):    {read{Nginx, "blog.example", "192.0.2.7", "GET", "/a?b=c", browser, before, 200, true}, second},
		caddyLine:                {read{Caddy, "blog.example", "192.0.2.7", "GET", "/a?b=c", browser, before, 200, true}, quarter},
		traefikLine:              {read{Traefik, "blog.example:8443", "192.0.2.7", "GET", "/a?b=c", browser, before, 200, true}, quarter},
		`{ "msec" : "1791633336.250", "remote_addr":"192.0.2.7","method":"GET","uri":"/\u0061\/\xd0\x9f","status":200 , "more":[1,{"a":null}] }`: {
			read{Nginx, "", "192.0.2.7", "GET", "/a/П", "", "", 200, false}, quarter},
		`{"@timestamp":"2026-10-10T13:55:36+02:00","uri":"/rewritten","request_uri":"/\ud83d\ude00","client_ip":"192.0.2.7","remote_addr":"10.0.0.1","server_name":"_","host":"a:80","status":"200"}`: {
			read{Nginx, "a:80", "192.0.2.7", "", "/😀", "", "", 200, false}, second},
	} {
		var l Line
		require.NoError(t, p.Parse([]byte(text), &l), text)
		assert.Equal(t, want.read, l.read(), text)
		assert.True(t, want.at.Equal(l.Time), "%s: %s", text, l.Time)
	}
}

// Lines whose fields are described by a header or a format.
func TestParseByHeaderOrFormat(t *testing.T) {
	const browser, before = "Mozilla/5.0 (X11; Linux x86_64)", "https://other.example/"
	second := time.Date(2026, 10, 10, 11, 55, 36, 0, time.UTC)
	quarter := second.Add(250 * time.Millisecond)
	like := func(format Format, host, target, referer string, agent bool) read {
		r := read{format, host, "192.0.2.7", "GET", target, "", referer, 200, agent}
		if agent {
			r.agent = browser
		}
		return r
	}
	for _, c := range []struct {
		format       Format
		header, text string
		want         read
		at           time.Time
	}{
		{"", w3cHeader, w3cLine, like(W3C, "blog.example", "/a?b=c", before, true), second},
		{W3C, w3cHeader, strings.Replace(w3cLine, " b=c ", " - ", 1), like(W3C, "blog.example", "/a", before, true), second},
		{"", "#Fields: time c-ip date cs-method sc-status cs-uri", "11:55:36.25 192.0.2.7 2026-10-10 GET 200 https://blog.example/a",
			like(W3C, "", "https://blog.example/a", "", false), quarter},
		{"", cloudFrontHeader, cloudFrontLine, like(CloudFront, "blog.example", "/a?b=c", before, true), second},
		{CloudFront, cloudFrontHeader, strings.ReplaceAll(strings.Replace(cloudFrontLine, "/a", "/a%2520%C3%A9", 1), "%20", "%2520"),
			like(CloudFront, "blog.example", "/a%20é?b=c", before, true), second},
		{"", "", albLine, like(ALB, "", "https://blog.example:443/a?b=c", "", true), quarter},
		{ALB, "", strings.Replace(albLine, "192.0.2.7:2817", "[2001:db8::1]:2817", 1), read{ALB, "", "2001:db8::1", "GET",
			"https://blog.example:443/a?b=c", browser, "", 200, true}, quarter},
		{"", "", strings.Replace(albLine, " 200 200 ", " - - ", 1), read{ALB, "", "192.0.2.7", "GET", "https://blog.example:443/a?b=c", browser,
			"", 0, true}, quarter},
		{"haproxy@Europe/Berlin", "", haproxyLine, like(HAProxy, "", "/a?b=c", "", false), quarter},
		{"haproxy@UTC", "", haproxyLine[37:], like(HAProxy, "", "/a?b=c", "", false), quarter.Add(2 * time.Hour)},
		{"haproxy@Europe/Berlin", "", strings.NewReplacer("192.0.2.7:", "2001:db8::1:", " 200 ", " -1 ", "10/Oct/2026:13", "10/Nov/2026:12",
			"GET /", "<BADREQ>/").Replace(haproxyLine), read{HAProxy, "", "2001:db8::1", "", "", "", "", 0, false}, quarter.AddDate(0, 1, 0)},
		{ownFormat, "", ownLine, like(LogFormat, "blog.example", "/a?b=c", "", true), second},
		{`$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`, "", combinedLine,
			like(LogFormat, "", "/a?b=c", before, true), second},
		{`[$msec] $status $request_method $request_uri $remote_addr`, "", `[1791633336.250] 200 GET /\xd0\x9f 192.0.2.7`,
			like(LogFormat, "", "/П", "", false), quarter},
	} {
		p, l := NewParser(c.format), Line{}
		require.NoError(t, Check(c.format))
		require.Equal(t, c.header != "", p.Header([]byte(c.header)))
		require.False(t, p.Header([]byte(c.text)))
		require.NoError(t, p.Parse([]byte(c.text), &l), c.text)
		assert.Equal(t, c.want, l.read(), c.text)
		assert.True(t, c.at.Equal(l.Time), "%s: %s", c.text, l.Time)
		line := []byte(c.text)
		assert.Zero(t, testing.AllocsPerRun(10, func() { _ = p.Parse(line, &l) }), "reading takes no memory: %s", c.text)
		for end := range len(c.text) { // a prefix is an error or the same, without a panic
			if p.Parse([]byte(c.text[:end]), &l) == nil {
				require.Contains(t, c.want.client, string(l.Client), c.text[:end])
			}
		}
	}
	for format, wants := range map[Format]string{
		"w3": "write one of", "haproxy": "--format haproxy@Europe/Berlin", "haproxy@Berlin": "is not a time zone", "haproxy@": "is not a time zone",
		"$remote_addr$status": "two variables", "$remote_addr $status": "$time_local", "$request $status [$time_local]": "lacks $remote_addr",
		"$remote_addr [$time_local] $status": "lacks $request", `$remote_addr [$msec] "$request"`: "lacks $status",
	} {
		require.ErrorContains(t, Check(format), wants, format)
	}
	headed := NewParser("")
	headed.Header([]byte(w3cHeader))
	for text, want := range map[string]error{
		w3cLine[:90]: errEnds, strings.Replace(w3cLine, "192.0.2.7", "a", 1): errClient, strings.Replace(w3cLine, "11:55", "25:55", 1): errTime,
		strings.Replace(w3cLine, " 200 ", " - ", 1): errStatus,
	} {
		require.ErrorIs(t, headed.Parse([]byte(text), &Line{}), want, text)
	}
	headed.Header([]byte("#Fields: date time c-ip"))
	require.ErrorIs(t, headed.Parse([]byte("2026-10-10 11:55:36 192.0.2.7"), &Line{}), errNoTime)
	require.NoError(t, headed.Parse([]byte(combinedLine), &Line{}))
	require.ErrorIs(t, NewParser("").Parse([]byte(haproxyLine), &Line{}), errNoZone)
	require.ErrorIs(t, NewParser("").Parse([]byte(w3cLine), &Line{}), errNoTime)
	require.ErrorIs(t, NewParser(ownFormat).Parse([]byte(combinedLine), &Line{}), errLayout)
}

func before(line, part string) string {
	head, _, _ := strings.Cut(line, part)
	return head
}

// The error for a wrong line describes the problem.
func TestLinesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	p := NewParser("")
	for text, want := range map[string]error{
		"":                                errEmpty,
		"\r":                              errEmpty,
		"no log line":                     errNoTime,
		"2026-10-10 #Fields: date time [": errClient,
		strings.Replace(commonLine, "192.0.2.7", "name.example", 1): errClient,
		strings.Replace(commonLine, "GET", "G\x00T", 1):             errNUL,
		strings.Replace(commonLine, "Oct", "Okt", 1):                errTime,
		strings.Replace(commonLine, "Oct", "anF", 1):                errTime,
		strings.Replace(commonLine, "10/Oct", "31/Feb", 1):          errTime,
		strings.Replace(commonLine, "13:55", "24:55", 1):            errTime,
		strings.Replace(commonLine, "+0200", "+2600", 1):            errTime,
		commonLine[:40]:                                  errNoTime,
		commonLine[:60]:                                  errRequest,
		before(commonLine, " 200"):                       errStatus,
		before(commonLine, " 2326"):                      errEnds,
		combinedLine[:len(combinedLine)-1]:               errEnds,
		combinedLine[:len(commonLine)+10]:                errEnds,
		commonLine + strings.Repeat("x", LongestLine):    errTooLong,
		nginxLine[:len(nginxLine)-1]:                     errJSON,
		nginxLine + "x":                                  errJSON,
		`{"a":tru}`:                                      errJSON,
		`{"a":"` + "\x00" + `"}`:                         errNUL,
		strings.Repeat(`{"a":`, 50) + "1":                errJSON,
		strings.Repeat(`{"a":[`, 50) + "1":               errJSON,
		`{}`:                                             errNoFields,
		strings.Replace(nginxLine, "Oct", "Okt", 1):      errTime,
		strings.Replace(nginxLine, `"status"`, `"s"`, 1): errNoFields,
	} {
		var l Line
		require.ErrorIs(t, p.Parse([]byte(text), &l), want, "%.200s", text)
	}
	for _, format := range Formats {
		if format == HAProxy {
			format += "@UTC"
		}
		var l Line
		err := NewParser(format).Parse([]byte(combinedLine), &l)
		assert.Equal(t, format == Combined, err == nil, format)
	}
}

// Times equal those of the standard library, on every day of four centuries.
func TestTimes(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", -(9*3600 + 30*60))
	for day := range 400*365 + 97 {
		at := time.Date(1800, 1, 1+day, day%24, day%60, day%59, 0, zone)
		for _, layout := range []string{"02/Jan/2006:15:04:05 -0700", time.RFC3339} {
			got, _, ok := parseTime([]byte(at.Format(layout)))
			require.True(t, ok && got.Equal(at), "%s: %s", at, got)
		}
	}
	for text, want := range map[string]string{
		"1791633336":                         "2026-10-10T11:55:36Z",
		"1791633336.5":                       "2026-10-10T11:55:36.5Z",
		"1791633336500.25":                   "2026-10-10T11:55:36.5Z",
		"1791633336500000000":                "2026-10-10T11:55:36.5Z",
		"2026-10-10 11:55:36,5Z":             "2026-10-10T11:55:36.5Z",
		"2026-10-10T11:55:36.123456789+0000": "2026-10-10T11:55:36.123456789Z",
		"1e9":                                "", "": "", "-": "", "2026-10-10": "", "2026-13-10T11:55:36Z": "", "2026-10-10T11:55:36": "",
		"99999999999999999999":      "",
		"2026-10-10T11:55:36+07:0x": "", "2026-10-10T11:55:36x07:00": "",
	} {
		got, _, ok := parseTime([]byte(text))
		require.Equal(t, want != "", ok, text)
		if ok {
			require.Equal(t, want, got.UTC().Format(time.RFC3339Nano), text)
		}
	}
}

// Parsing lines allocates nothing.
func TestParseAllocatesNothing(t *testing.T) {
	p, l := NewParser(""), Line{}
	for _, text := range []string{commonLine, combinedLine, nginxLine, caddyLine, traefikLine, "nonsense",
		`192.0.2.7 - - [10/Oct/2026:11:55:36 +0000] "GET /\xd0\x9f HTTP/1.1" 200 1 "-" "a \"b\""`} {
		line := []byte(text)
		assert.Zero(t, testing.AllocsPerRun(100, func() { _ = p.Parse(line, &l) }), text)
	}
}

// Whatever a line contains, the parsed fields are parts of it, or unescaped from it.
func FuzzParseCommon(f *testing.F) {
	for _, text := range []string{commonLine, combinedLine, "blog.example:443 " + combinedLine,
		`1.2.3.4 - - [10/Oct/2026:11:55:36 +0000] "\x16\"" 400 0 "\\" "\u00e9"`} {
		f.Add([]byte(text))
	}
	p := NewParser("")
	f.Fuzz(func(t *testing.T, text []byte) {
		before := string(text)
		var l Line
		err := p.Parse(text, &l)
		require.Equal(t, before, string(text), "the line is left as it is")
		if err != nil || text[0] == '{' {
			return
		}
		require.Contains(t, before, string(l.Client))
		require.Contains(t, before, string(l.Host))
		require.NotEmpty(t, l.Client)
		require.False(t, l.Time.IsZero())
		require.Contains(t, before, fmt.Sprintf(" %03d", l.Status))
		if !strings.Contains(before, `\`) {
			require.Contains(t, before, string(l.Target))
			require.Contains(t, before, string(l.Agent))
			require.Contains(t, before, string(l.Referer))
		}
	})
}

// Whatever the format and the lines, the parser does not panic, and leaves the line unchanged.
func FuzzParseAs(f *testing.F) {
	for _, one := range [][3]string{{"", w3cHeader, w3cLine}, {"", cloudFrontHeader, cloudFrontLine}, {"", "", albLine},
		{"haproxy@Europe/Berlin", "", haproxyLine}, {ownFormat, "", ownLine}, {"$msec ${a}$uri$status", "#Fields:", "1 /2"}} {
		f.Add(one[0], []byte(one[1]), []byte(one[2]))
	}
	f.Fuzz(func(t *testing.T, format string, header, text []byte) {
		if Check(Format(format)) != nil {
			return
		}
		p, before, whole := NewParser(Format(format)), string(text), Line{}
		p.Header(header)
		err := p.Parse(text, &whole)
		require.Equal(t, before, string(text))
		if err == nil {
			require.False(t, whole.Time.IsZero() || len(whole.Client) == 0)
		}
	})
}

// The fields of a JSON line equal those read by encoding/json, and every line that it can read can be parsed.
func FuzzParseJSON(f *testing.F) {
	for _, text := range []string{nginxLine, caddyLine, traefikLine, `{"uri":"\u0061\ud83d\ude00","a":[[],{}],"status":200}`} {
		f.Add([]byte(text))
	}
	p := NewParser("")
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) == 0 || text[0] != '{' {
			return
		}
		var l Line
		err := p.Parse(text, &l)
		var want map[string]any
		if json.Unmarshal(text, &want) != nil || strings.ContainsAny(string(text), "\r\n\x00") || strings.Count(string(text), "{")+
			strings.Count(string(text), "[") > deepest {
			return
		}
		require.NotErrorIs(t, err, errJSON)
		if err != nil || l.Format != Nginx || len(want) != strings.Count(string(text), `":`) || strings.Contains(string(text), "�") {
			return // repeated names, or names in other objects
		}
		if agent, is := want["http_user_agent"].(string); is && want["user_agent"] == nil && want["agent"] == nil &&
			want["request_User-Agent"] == nil {
			require.Equal(t, agent, string([]rune(string(l.Agent))))
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct {
		format Format
		line   string
	}{{ownFormat, ownLine}, {"haproxy@UTC", haproxyLine}, {ALB, albLine}, {W3C, w3cLine}, {CloudFront, cloudFrontLine},
		{Common, commonLine}, {Combined, combinedLine}, {CombinedHost, "blog.example:443 " + combinedLine}, {Nginx, nginxLine},
		{Caddy, caddyLine}, {Traefik, traefikLine}} {
		b.Run(before(string(c.format), " "), func(b *testing.B) {
			p, l, line := NewParser(c.format), Line{}, []byte(c.line)
			p.Header([]byte(map[Format]string{W3C: w3cHeader, CloudFront: cloudFrontHeader}[c.format]))
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				if err := p.Parse(line, &l); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}
