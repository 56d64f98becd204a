package handler

import (
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"footfall/intake"
	"footfall/visit"
)

// visits counts many visits in one call. It checks the app, the key and the headers before it reads the body.
func (s *service) visits(c echo.Context) error {
	r := c.Request()
	f, err := readQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	call := intake.Call{Key: r.Header.Get("Idempotency-Key")}
	wrong := f.parseErr
	if wrong == nil && f.answer.isSet {
		wrong = invalid("answer", "visits of this call are always counted immediately: leave it out")
	}
	if wrong == nil {
		wrong = readCall(r, &call)
	}
	named := field{isSet: true} // as if the query had the field ip, because each item in the body identifies its visitor
	ask := s.request(c, &fields{app: f.app, ip: named, offsets: f.offsets, parseErr: wrong})
	cell, err := s.Cells.Of(f.app.value)
	if err != nil {
		return err
	}
	call.Turns = cell.Turns
	if call.Counting, err = cell.Counter.AuthorizeCounting(r.Context(), ask); err != nil {
		return err
	}
	if err := readKind(c, &call); err != nil {
		return err
	}
	results, internal, err := s.desk.Count(r.Context(), call)
	if err != nil {
		return err
	}
	if internal != nil {
		s.logFault(c.Path(), http.StatusInternalServerError, internal)
	}
	if call.SumsOnly {
		return respond(c, http.StatusOK, sumsOf(results))
	}
	out := appendList(append(make([]byte, 0, 128*len(results)), `{"visits":[`...), len(results), func(out []byte, i int) []byte {
		return appendResult(out, &results[i])
	})
	return respond(c, http.StatusOK, append(out, "]}"...))
}

const longestKey = 255 // maximum length of an Idempotency-Key, in bytes

func readCall(r *http.Request, call *intake.Call) error {
	switch answers := r.URL.Query()["answers"]; {
	case len(answers) == 0:
	case len(answers) == 1 && answers[0] == "none":
		call.SumsOnly = true
	default:
		return invalid("answers", "write none, or leave it out")
	}
	given := r.Header.Values("Idempotency-Key")
	outside := func(c rune) bool { return c < ' ' || c > '~' }
	if len(given) > 1 || len(given) == 1 && (given[0] == "" || len(given[0]) > longestKey || strings.ContainsFunc(given[0], outside)) {
		return invalid("Idempotency-Key", "give one, of 1 to %d ASCII characters", longestKey)
	}
	return nil
}

// readKind sets the body of a call, and reads the body's format from the headers.
func readKind(c echo.Context, call *intake.Call) error {
	r, h := c.Request(), c.Request().Header
	call.Length, call.Body = r.ContentLength, http.MaxBytesReader(c.Response(), r.Body, intake.MostBytes)
	call.ReadUntil = http.NewResponseController(c.Response()).SetReadDeadline
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	call.Lines = kind == "application/x-ndjson"
	if err != nil || !call.Lines && kind != "application/json" {
		return echo.NewHTTPError(http.StatusUnsupportedMediaType, "body: send a JSON array, with Content-Type: application/json, "+
			"or a line of JSON for each item, with application/x-ndjson")
	}
	packed := h.Get("Content-Encoding")
	call.Gzip = strings.EqualFold(packed, "gzip")
	if !call.Gzip && packed != "" && !strings.EqualFold(packed, "identity") {
		return echo.NewHTTPError(http.StatusUnsupportedMediaType, "body: compress it with gzip, or not at all")
	}
	return nil
}

// notReached is the error text for visits that were not processed before the call ended early.
const notReached = "not counted: send again"

func appendResult(out []byte, r *intake.Result) []byte {
	switch r.Outcome {
	case intake.Counted:
		out = appendAnswer(append(out, `{"counted":`...), r.Answer)
	case intake.Repeated:
		out = appendAnswer(append(out, `{"repeated":`...), r.Answer)
	case intake.Skipped:
		out = strconv.AppendQuote(append(out, `{"skipped":`...), string(r.Answer.Skipped))
	case intake.Failed:
		return append(out, errorBody(r.Fault)...)
	case intake.Unknown:
		return append(out, memberBody("unknown", r.Fault)...)
	case intake.Unreached:
		return append(out, errorBody(notReached)...)
	}
	return append(out, '}')
}

const mostErrors = 100

// sums is the response to a call with answers=none: the number of visits for each outcome.
type sums struct {
	Counted   int                   `json:"counted"`
	Repeated  int                   `json:"repeated"`
	Skipped   map[visit.Skipped]int `json:"skipped"` // number of visits by the reason why they were not counted
	Failed    int                   `json:"failed"`
	Unknown   int                   `json:"unknown"`   // possibly counted: the connection to the database was lost
	Unreached int                   `json:"unreached"` // not processed before the call ended early
	Errors    []itemError           `json:"errors"`    // the errors of the first failed visits, at most mostErrors
}

type itemError struct {
	Item  int    `json:"item"` // the visit's position in the body, from 0
	Error string `json:"error"`
}

func sumsOf(results []intake.Result) []byte {
	all := sums{Skipped: map[visit.Skipped]int{}, Errors: []itemError{}}
	of := map[intake.Outcome]int{}
	for i := range results {
		of[results[i].Outcome]++
		switch outcome := results[i].Outcome; {
		case outcome == intake.Skipped:
			all.Skipped[results[i].Answer.Skipped]++
		case outcome == intake.Failed && len(all.Errors) < mostErrors:
			all.Errors = append(all.Errors, itemError{i, results[i].Fault})
		}
	}
	all.Counted, all.Repeated, all.Failed = of[intake.Counted], of[intake.Repeated], of[intake.Failed]
	all.Unknown, all.Unreached = of[intake.Unknown], of[intake.Unreached]
	body, _ := json.Marshal(all) // cannot fail for numbers and strings
	return body
}
