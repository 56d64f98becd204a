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

	"github.com/labstack/echo/v4"

	"footfall/report"
)

// result is a report that was made: a table, and what it is in JSON.
type result struct {
	name string // of the list, in JSON
	rows any    // a slice of structs
	one  any    // what is written in JSON in place of a list; nil for a list
	next string // where the list goes on; "" at its end
	of   any    // what the list is of: a struct that JSON has beside it; nil for nothing
}

// listing is a list of the first n rows. after names the place behind a row, from which the list
// goes on.
func listing[T any](name string, rows []T, n int, after func(T) string) *result {
	if rows == nil {
		rows = []T{} // in JSON, [] instead of null
	}
	made := &result{name: name, rows: rows}
	if len(rows) > n && after != nil {
		made.rows, made.next = rows[:n], after(rows[n-1])
	}
	return made
}

func single[T any](row T) *result { return &result{rows: []T{row}, one: row} }

func (r *result) json() ([]byte, error) {
	if r.one != nil {
		return json.Marshal(r.one)
	}
	members := []any{map[string]any{r.name: r.rows}}
	if r.next != "" {
		members = append(members, map[string]string{"next": r.next})
	}
	if r.of != nil {
		members = append(members, r.of)
	}
	body := []byte("{")
	for i, some := range members {
		object, err := json.Marshal(some)
		if err != nil {
			return nil, err
		}
		if inner := object[1 : len(object)-1]; len(inner) > 0 {
			if i > 0 {
				body = append(body, ',')
			}
			body = append(body, inner...)
		}
	}
	return append(body, '}'), nil
}

// writeReport writes a report, smaller where the caller reads that, or tells that the caller has it
// already.
func writeReport(c echo.Context, name, format string, made *result) error {
	h := c.Response().Header()
	body, err := made.json()
	kind := "application/json"
	if format == "csv" {
		body = []byte(strings.ReplaceAll(report.CSVOf(made.rows), "\n", "\r\n")) // the end of a line in RFC 4180
		kind = "text/csv; charset=utf-8; header=present"
		h.Set(echo.HeaderContentDisposition, `attachment; filename="footfall-`+name+`.csv"`) // the name of an app needs no escaping
	}
	if err != nil {
		return err
	}
	if made.next != "" {
		query := c.Request().URL.Query()
		query.Set("after", made.next)
		h.Set("Link", "<?"+query.Encode()+`>; rel="next"`) // whatever a proxy takes off the path
	}
	h.Set(echo.HeaderVary, "Authorization, Accept, Accept-Encoding")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	return send(c, kind, "private, no-cache", body, true)
}

// send writes a body with its hash as tag, or tells that the caller has it already. What may be
// packed is smaller where the caller reads that; its tag is weak, since it is the same either way.
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
		_, _ = w.Write(body) // a bytes.Buffer refuses nothing
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
	_, _ = c.Response().Write(body) // fails if the caller has left: there is nobody to tell
	return nil
}

func readsGzip(c echo.Context) bool {
	return strings.Contains(c.Request().Header.Get(echo.HeaderAcceptEncoding), "gzip")
}

// matches reports whether a caller has what the tag names. A proxy that has compressed the body
// calls the tag weak.
func matches(values []string, tag string) bool {
	for one := range strings.SplitSeq(strings.Join(values, ","), ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}
