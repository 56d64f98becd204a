package handler

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"footfall/counter"
	"footfall/report"
	"footfall/visit"
	"footfall/visit/tag"
)

// body describes a JSON request body.
type body struct {
	most  int64  // maximum size in bytes
	shape string // the expected shape, for error messages
	list  string // name of the field that contains a list; "": the body describes a single visit
}

// A body of 16 KiB has room for one URI, even if each of its 2,048 bytes is written as \u00xx. A body of 4 MiB has room for
// many URIs without such escapes.
var (
	oneVisit = body{16 << 10, `send {"app":"…","uri":"…"}, or "event":"…" instead of "uri"; optionally the visitor's "ip":"…" or ` +
		`"visitor":"…", and "at":"…", "language":"…", "country":"…", "agent":"…" and "tags":{"plan":"…"}, if the app or your key ` +
		`permits them; "referrer":"…" and "title":"…" of the page; "answer":"later" if it may be counted a moment later`, ""}
	manyCounts = body{4 << 20, `send {"app":"…","uris":["…",…]}; optionally "ip":"…" (and "agent":"…") or "visitor":"…" for a ` +
		`visitor's ranks, if the app or your key permits it; "with":"today,here" for current numbers`, "uris"}
	manyPeople = body{4 << 20, `send {"app":"…","ids":["…",…]}`, "ids"}
)

// answerLater is the only value of the field answer: the response then only confirms that the visit is accepted, without numbers.
const answerLater = "later"

type field struct {
	value string
	isSet bool
}

type fields struct {
	app, ip, visitor, agent, uri, event, id, at, referrer, language, country, answer, offsets, title, with field

	tags tag.Set
	list []string // the values of the field uris or ids
	// parseErr is the first error in a field other than app. If the app is unknown, that error is reported instead of parseErr.
	parseErr error
}

// postpone stores an error in parseErr, unless parseErr already has an earlier error, and returns nil. But an error about the
// field app is returned unchanged.
func (f *fields) postpone(name string, err error) error {
	if err == nil || name == "app" {
		return err
	}
	if f.parseErr == nil {
		f.parseErr = err
	}
	return nil
}

// names lists the names of the fields. The first six, up to "agent", may also be in a JSON body with a list of pages or ids. The
// fields in mayBeEmpty, from "with" to "title", may be empty: browsers send an empty referrer if there is none, and a visitor's
// properties are not always available.
var (
	names = [...]string{"app", "offsets", "ip", "visitor", "with", "agent", "referrer", "language", "country", "title", "uri", "event", "id",
		"at", "answer"}

	visitOnlyFields = names[6:]
	mayBeEmpty      = names[4:10]
)

// find returns the field with this name, or nil if there is none.
func (f *fields) find(name string) *field {
	at := slices.Index(names[:], name)
	if at < 0 {
		return nil
	}
	return [len(names)]*field{&f.app, &f.offsets, &f.ip, &f.visitor, &f.with, &f.agent, &f.referrer, &f.language, &f.country, &f.title, &f.uri,
		&f.event, &f.id, &f.at, &f.answer}[at]
}

// set stores the value of a field. It rejects ambiguous input: a field that is given twice, or an empty value, which a template
// sends if its variable is not set.
func (f *field) set(name, value string) error {
	if f.isSet {
		return invalid(name, "it is given twice: give it once")
	}
	f.isSet = true
	if value == "" && !slices.Contains(mayBeEmpty, name) {
		return invalid(name, "it is empty: give it a value, or leave it out")
	}
	if name == "answer" && value != answerLater {
		return invalid(name, "the only possible value is %s: leave it out to get numbers", answerLater)
	}
	if name == "offsets" && value != report.WithoutOffsets {
		return invalid(name, "the only possible value is %s: leave it out to include numbers from elsewhere", report.WithoutOffsets)
	}
	f.value = value
	return nil
}

// readWith parses the field "with", which selects additional numbers: those of today, and those of the last minutes ("here").
func (f *fields) readWith() (with counter.ExtraNumbers) {
	if !f.with.isSet {
		return with
	}
	for word := range strings.SplitSeq(f.with.value, ",") {
		switch word {
		case "today":
			with.Today = true
		case "here":
			with.Here = true
		default:
			_ = f.postpone("with", invalid("with",
				"%.64q is not possible: write today, here or today,here", word)) // returns nil, as for every field except app
		}
	}
	return with
}

func invalid(name, format string, args ...any) error {
	return visit.Errorf(visit.Invalid, name, format, args...)
}

// readFields reads the query of a GET, or the JSON body of a POST.
func readFields(c echo.Context) (fields, error) {
	r := c.Request()
	if r.Method == http.MethodPost {
		return readBody(r, c.Response(), oneVisit)
	}
	return readQuery(r.URL.RawQuery)
}

// tagPrefix is the prefix of query parameters for an app's own tags, such as tag.plan=free.
const tagPrefix = "tag."

// readQuery reads the fields from a query and ignores other parameters. It is called for every visit by GET, so it makes a single
// pass over the query and allocates no map.
func readQuery(query string) (fields, error) {
	var f fields
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(pair, "=")
		if strings.ContainsAny(name, "%+") {
			decoded, err := url.QueryUnescape(name)
			if err != nil {
				continue // a name that cannot be decoded is not the name of a field
			}
			name = decoded
		}
		own, isTag := strings.CutPrefix(name, tagPrefix)
		field := f.find(name)
		if field == nil && !isTag {
			continue
		}
		value, err := url.QueryUnescape(value)
		switch {
		case err != nil:
			if field != nil {
				field.isSet = true
			}
			err = invalid(name, "it has a %% that is not followed by two hexadecimal digits: write %% as %%25")
		case isTag:
			err = f.tags.Give(own, value)
		default:
			err = field.set(name, value)
		}
		if err := f.postpone(name, err); err != nil {
			return fields{}, err
		}
	}
	return f, nil
}

// bodyError returns the error for a body that could not be read, or that is larger than most bytes.
func bodyError(err error, most int64) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return visit.Errorf(visit.TooLarge, "body", "it is larger than %d bytes", most)
	}
	return invalid("body", "it could not be read completely")
}

func readBody(r *http.Request, w http.ResponseWriter, is body) (fields, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return fields{}, echo.NewHTTPError(http.StatusUnsupportedMediaType, "body: send JSON, with Content-Type: application/json")
	}
	sent, err := io.ReadAll(http.MaxBytesReader(w, r.Body, is.most))
	if err != nil {
		return fields{}, bodyError(err, is.most)
	}
	if !utf8.Valid(sent) {
		return fields{}, invalid("body", "it is not valid UTF-8")
	}
	return readJSON(sent, is)
}

// readJSON reads an object of strings and, if is.list is set, one list. It is stricter than encoding/json, which accepts
// duplicate names and names in upper case.
func readJSON(sent []byte, is body) (fields, error) {
	var f fields
	if len(bytes.TrimSpace(sent)) == 0 {
		return f, invalid("body", "it is empty: %s", is.shape)
	}
	d := json.NewDecoder(bytes.NewReader(sent))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return f, invalid("body", "it is not a JSON object: %s", is.shape)
	}
	for d.More() {
		if err := f.readMember(d, is); err != nil {
			return fields{}, err
		}
	}
	if _, err := d.Token(); err != nil {
		return fields{}, invalid("body", "it is not valid JSON: %s", is.shape)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fields{}, invalid("body", "something follows the JSON object: %s", is.shape)
	}
	if is.list != "" && f.list == nil && f.parseErr == nil {
		f.parseErr = invalid(is.list, "they are missing: %s", is.shape)
	}
	return f, nil
}

func (f *fields) readMember(d *json.Decoder, is body) error {
	key, err := d.Token()
	name, ok := key.(string)
	var written json.RawMessage
	if err != nil || !ok || d.Decode(&written) != nil {
		return invalid("body", "it is not valid JSON: %s", is.shape)
	}
	if is.list != "" && name == is.list {
		return f.postpone(name, f.setList(name, written))
	}
	if is.list == "" && name == "tags" {
		return f.postpone(name, f.setTags(written))
	}
	field := f.find(name)
	if field == nil || is.list != "" && slices.Contains(visitOnlyFields, name) || is.list != manyCounts.list && name == "with" {
		return f.postpone("body", invalid("body", "%.64q is not a field: %s", name, is.shape))
	}
	var value string
	if written[0] != '"' || json.Unmarshal(written, &value) != nil {
		field.isSet = true
		return f.postpone(name, invalid(name, "it is not a string: write it in double quotes"))
	}
	return f.postpone(name, field.set(name, value))
}

func (f *fields) setTags(written json.RawMessage) error {
	if f.tags != nil {
		return invalid("tags", "they are given twice: give them once")
	}
	d := json.NewDecoder(bytes.NewReader(written))
	wrong := invalid("tags", `they are not an object of strings: write {"plan":"…"}`)
	if open, _ := d.Token(); open != json.Delim('{') {
		return wrong
	}
	for d.More() {
		name, _ := d.Token() // returns no error, because written is valid JSON
		value, _ := d.Token()
		text, ok := value.(string)
		if !ok {
			return wrong
		}
		if err := f.tags.Give(name.(string), text); err != nil {
			return err
		}
	}
	return nil
}

func (f *fields) setList(name string, written json.RawMessage) error {
	if f.list != nil {
		return invalid(name, "they are given twice: give them once")
	}
	f.list = []string{}
	var list []*string // pointers, because null in a list of strings would become ""
	if written[0] != '[' || json.Unmarshal(written, &list) != nil || slices.Contains(list, nil) {
		return invalid(name, `they are not a list of strings: give ["…",…]`)
	}
	if len(list) > mostList {
		return invalid(name, "there are %d: send at most %d", len(list), mostList)
	}
	for _, one := range list {
		f.list = append(f.list, *one)
	}
	return nil
}
