package handler

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"footfall/report"
)

// reportFormat returns "json" or "csv": the parameter, or else the format that the Accept header prefers.
func reportFormat(given string, h http.Header) (string, error) {
	switch given {
	case "json", csvFormat:
		return given, nil
	case "":
	default:
		return "", invalid("format", "%.64q is not a format: use json or csv", given)
	}
	accept := strings.Join(h.Values(echo.HeaderAccept), ",")
	if preference(accept, "text", "csv") > preference(accept, "application", "json") {
		return csvFormat, nil
	}
	return "json", nil
}

// preference returns the weight of a media type in an Accept header, from 0 to 1. If several entries match, the most specific
// entry counts.
func preference(accept, kind, subtype string) (wanted float64) {
	closest := 0
	for entry := range strings.SplitSeq(strings.ToLower(accept), ",") {
		parts := strings.Split(entry, ";")
		nearness := map[string]int{kind + "/" + subtype: 3, kind + "/*": 2, "*/*": 1}[strings.TrimSpace(parts[0])]
		if nearness <= closest {
			continue
		}
		closest, wanted = nearness, 1
		for _, p := range parts[1:] {
			if weight, is := strings.CutPrefix(strings.TrimSpace(p), "q="); is {
				wanted, _ = strconv.ParseFloat(weight, 64)
			}
		}
	}
	return wanted
}

// writeReport writes a report as one body, compressed if the caller accepts gzip. If the caller already has this body (according
// to its ETag), writeReport responds with 304.
func writeReport(c echo.Context, name, format string, made *report.Rows) error {
	body, err := made.JSON(nil)
	if err != nil {
		return err
	}
	if format == csvFormat {
		body = csvOf(made.JSONRows())
	}
	if made.Next != "" {
		query := c.Request().URL.Query()
		query.Set("after", made.Next)
		// The link is relative, because a proxy may have removed the start of the path.
		c.Response().Header().Set("Link", "<?"+query.Encode()+`>; rel="next"`)
	}
	return send(c, describeReport(c, name, format), "private, no-cache", body, true)
}

const csvFormat = "csv"

func csvOf(rows any) []byte {
	return []byte(strings.ReplaceAll(report.CSVOf(rows), "\n", "\r\n")) // RFC 4180 requires CRLF as the end of a line
}

func describeReport(c echo.Context, name, format string) (kind string) {
	h := c.Response().Header()
	h.Set(echo.HeaderVary, "Authorization, Cookie, Accept, Accept-Encoding")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Robots-Tag", "noindex")
	if format != csvFormat {
		return "application/json"
	}
	h.Set(echo.HeaderContentDisposition, `attachment; filename="footfall-`+name+`.csv"`) // app and report names need no escaping
	return "text/csv; charset=utf-8; header=present"
}

// writeParts writes a long report in parts. The report counts as running (see readInPlace) only while a part is read, not while
// it is sent. If a part cannot be read, writeParts aborts the connection. So the caller notices that the report is incomplete.
func (r *reports) writeParts(c echo.Context, name, format string, made *report.Rows, read func(report.Look) (*report.Rows, error)) error {
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, describeReport(c, name, format))
	h.Set(echo.HeaderCacheControl, "no-store")
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	c.Response().WriteHeader(http.StatusOK)
	if c.Request().Method == http.MethodHead {
		return nil
	}
	connection := http.NewResponseController(c.Response())
	part := partOfJSON
	if format == csvFormat {
		part = partOfCSV
	}
	for written := 0; ; {
		body := part(made, written)
		written += len(body)
		_ = connection.SetWriteDeadline(time.Now().Add(answerWithin)) // each part has its own time limit
		if _, err := c.Response().Write(body); err != nil || made.Follow == nil {
			return nil //nolint:nilerr // the caller has left
		}
		var err error
		if made, err = read(*made.Follow); err != nil {
			_, _ = r.statusOf(c, err) // logs the error
			panic(http.ErrAbortHandler)
		}
	}
}

// partOfCSV returns a part of a report as CSV. Only the first part has a header line. written is the number of bytes in earlier
// parts.
func partOfCSV(made *report.Rows, written int) []byte {
	body := csvOf(made.JSONRows())
	if written > 0 {
		_, body, _ = bytes.Cut(body, []byte("\r\n")) // removes the header line
	}
	return body
}

func partOfJSON(made *report.Rows, written int) []byte {
	list, _ := json.Marshal(made.JSONRows()) // cannot fail for numbers and strings
	begin, body := `{"`+made.Name+`":[`, list[1:len(list)-1]
	switch {
	case written == 0:
		body = append([]byte(begin), body...)
	case written > len(begin) && len(body) > 0:
		body = append([]byte(","), body...)
	}
	if made.Follow == nil {
		body = append(body, "]}"...)
	}
	return body
}

// send writes a body with its hash as ETag. If the caller already has the body, send responds with 304. If pack is true, send
// compresses the body for callers that accept gzip. The ETag is then weak (W/), because it is the same with and without gzip.
func send(c echo.Context, kind, cache string, body []byte, pack bool) error {
	h := c.Response().Header()
	sum := sha256.Sum256(body)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:]) + `"`
	h.Set("ETag", tag)
	if pack {
		h.Set("ETag", "W/"+tag)
	}
	h.Set(echo.HeaderCacheControl, cache)
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	if matches(c.Request().Header.Values("If-None-Match"), tag) {
		h.Del(echo.HeaderContentDisposition)
		c.Response().WriteHeader(http.StatusNotModified)
		return nil
	}
	if pack && readsGzip(c) {
		h.Set(echo.HeaderContentEncoding, "gzip")
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(body) // a bytes.Buffer returns no errors
		_ = w.Close()
		body = packed.Bytes()
	}
	return write(c, http.StatusOK, kind, body)
}

func write(c echo.Context, status int, kind string, body []byte) error {
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, kind)
	h.Set(echo.HeaderContentLength, strconv.Itoa(len(body)))
	c.Response().WriteHeader(status)
	_, _ = c.Response().Write(body) // fails if the caller has left
	return nil
}

func readsGzip(c echo.Context) bool {
	return strings.Contains(c.Request().Header.Get(echo.HeaderAcceptEncoding), "gzip")
}

// matches reports whether the values of If-None-Match contain this ETag, which means that the caller already has the body. It
// also accepts the weak form of the ETag (W/), because a proxy that compresses the body makes the ETag weak.
func matches(values []string, tag string) bool {
	for one := range strings.SplitSeq(strings.Join(values, ","), ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}
