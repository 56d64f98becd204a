package intake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/visit"
	"footfall/visit/tag"
)

// items contains the items of a request body: visits, or links from ids to persons.
type items[T any] struct {
	list     []T
	problems map[int]string // index in list → why the item is invalid
}

// form describes the JSON syntax of one kind of item. Each item is an object. Its values are strings, except the value of
// the optional field tags, which is an object.
type form[T any] struct {
	one, many  string   // the word for an item in errors, in the singular and plural
	example    string   // an example of an item, for errors
	names      []string // the names of an item's fields
	firstEmpty int      // index of the first field that may be empty
	set        func(item *T, field int, value string) error
	tags       func(item *T) *tag.Set
}

// visitForm is the form of items in POST /visits.
var visitForm = form[counter.Item]{
	"visit", "visits", `{"uri":"…","ip":"…"}`,
	[]string{"uri", "ip", "visitor", "id", "at", "event", "agent", "referrer", "language", "country", "tags"}, 6,
	func(v *counter.Item, field int, value string) (err error) {
		if field == 4 {
			v.At, err = visit.ParseTime(value)
			return err
		}
		*[...]*string{&v.URI, &v.IP, &v.Visitor, &v.ID, nil, &v.Event, &v.Agent, &v.Referrer, &v.Language, &v.Country}[field] = value
		return nil
	},
	func(v *counter.Item) *tag.Set { return &v.Tags },
}

// linkForm is the form of items in PUT /people. An item is a link from an id to a person.
var linkForm = form[app.Link]{
	"item", "items", `{"id":"…","is":"…"}`,
	[]string{"id", "is", "tags"}, 2,
	func(s *app.Link, field int, value string) error {
		*[...]*string{&s.ID, &s.PersonID}[field] = value
		return nil
	},
	func(s *app.Link) *tag.Set { s.Tags = tag.Set{}; return &s.Tags },
}

// unreadable is a syntax error in a body. It makes the whole body invalid, so that no item is counted or stored.
type unreadable struct {
	at      int // byte offset of the error in the text
	message string
}

func (u *unreadable) Error() string { return u.message }

// readItems parses a JSON array of items or, if lines is set, one JSON object per line. Strings without escapes are not
// copied, but are slices of text. So text stays in memory as long as the items.
func readItems[T any](f *form[T], text string, lines bool) (items[T], error) {
	r := reader[T]{form: f, text: text, end: len(text)}
	var err error
	if valid := validUTF8(text); valid < len(text) {
		err = &unreadable{valid, "it is not valid UTF-8"}
	} else if lines {
		err = r.lines()
	} else {
		err = r.array()
	}
	if where, ok := errors.AsType[*unreadable](err); ok {
		before := text[:where.at]
		line := strings.LastIndexByte(before, '\n') + 1
		return items[T]{}, visit.Errorf(visit.Invalid, "body", "line %d, column %d: %s",
			strings.Count(before, "\n")+1, utf8.RuneCountInString(before[line:])+1, where.message)
	}
	return r.items, err
}

// ReadItem parses one visit, in the JSON syntax of POST /visits.
func ReadItem(text string) (counter.Item, error) { return readItem(&visitForm, text) }

// ReadLink parses one link from an id to a person, in the JSON syntax of PUT /people.
func ReadLink(text string) (app.Link, error) { return readItem(&linkForm, text) }

func readItem[T any](f *form[T], text string) (none T, err error) {
	if !utf8.ValidString(text) {
		return none, visit.Errorf(visit.Invalid, "", "it is not valid UTF-8")
	}
	r := reader[T]{form: f, text: text, end: len(text), items: items[T]{list: make([]T, 0, 1)}}
	if err = r.item(); err == nil {
		err = r.requireEnd("the " + f.one)
	}
	if where, ok := errors.AsType[*unreadable](err); ok {
		return none, visit.Errorf(visit.Invalid, "", "at byte %d: %s", where.at+1, where.message)
	}
	if wrong := r.items.problems[0]; wrong != "" {
		return none, visit.Errorf(visit.Invalid, "", "%s", wrong)
	}
	return r.items.list[0], err
}

// validUTF8 returns the length in bytes of the longest prefix of text that is valid UTF-8.
func validUTF8(text string) int {
	if utf8.ValidString(text) {
		return len(text)
	}
	for at, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[at:], string(r)) {
			return at
		}
	}
	return len(text)
}

// reader parses the JSON text of items. It does not use encoding/json, which accepts duplicate names and names in upper
// case, and is several times slower.
type reader[T any] struct {
	form  *form[T]
	text  string
	at    int
	end   int // offset at which parsing stops: the end of the current line, or of the whole text
	items items[T]
}

func (r *reader[T]) fault(format string, args ...any) error {
	return &unreadable{r.at, fmt.Sprintf(format, args...)}
}

func (r *reader[T]) array() error {
	if !r.take('[') {
		return r.fault("a list of %s should begin here with [", r.form.many)
	}
	if err := r.list(']', "a comma or ] should follow the "+r.form.one, r.item); err != nil {
		return err
	}
	return r.requireEnd("the list of " + r.form.many)
}

// list parses comma-separated elements up to the character end. It calls one for each element. If neither a comma nor end
// follows an element, list returns an error with the text missing.
func (r *reader[T]) list(end byte, missing string, one func() error) error {
	if r.take(end) {
		return nil
	}
	for {
		if err := one(); err != nil {
			return err
		}
		switch {
		case r.take(','):
		case r.take(end):
			return nil
		default:
			return r.fault("%s", missing)
		}
	}
}

func (r *reader[T]) lines() error {
	for from := 0; from < len(r.text); from = r.end + 1 {
		r.at, r.end = from, len(r.text)
		if line := strings.IndexByte(r.text[from:], '\n'); line >= 0 {
			r.end = from + line
		}
		if r.space(); r.at == r.end {
			continue
		}
		if err := r.item(); err != nil {
			return err
		}
		if err := r.requireEnd("the " + r.form.one + " on its line"); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader[T]) requireEnd(than string) error {
	if r.space(); r.at < r.end {
		return r.fault("nothing should follow %s", than)
	}
	return nil
}

func (r *reader[T]) item() error {
	place := len(r.items.list)
	if place == MostItems {
		return visit.Errorf(visit.Invalid, "body", "it has more than %d %s: send them in several calls", MostItems, r.form.many)
	}
	var item T
	r.items.list = append(r.items.list, item)
	wrong := func(field, format string, args ...any) {
		if r.items.problems == nil {
			r.items.problems = map[int]string{}
		}
		if r.items.problems[place] == "" {
			r.items.problems[place] = visit.Errorf(visit.Invalid, field, format, args...).Message()
		}
	}
	if !r.take('{') {
		wrong("", "it is not an object: send %s", r.form.example)
		return r.skip()
	}
	var given fields
	return r.list('}', "a comma or } should follow the value", func() error { return r.member(&r.items.list[place], &given, wrong) })
}

// fields is a set of fields of an item. A field has the same index as its name in form.names.
type fields [16]bool

// member parses a field of an item: a name and its value. If the JSON syntax is valid, but the field is not, member calls
// wrong.
func (r *reader[T]) member(item *T, given *fields, wrong func(field, format string, args ...any)) error {
	name, err := r.name("the name of a field")
	if err != nil {
		return err
	}
	number := slices.Index(r.form.names, name)
	if number < 0 {
		wrong("", "%.64q is not a field of %s: give %s", name, r.form.one, strings.Join(r.form.names, ", "))
		return r.skip()
	}
	if given[number] {
		wrong(name, "it is given twice: give it once")
		return r.skip()
	}
	given[number] = true
	if name == "tags" {
		return r.tags(r.form.tags(item), wrong)
	}
	if r.at == r.end || r.text[r.at] != '"' {
		wrong(name, "it is not a string: write it in double quotes")
		return r.skip()
	}
	value, err := r.string("")
	if err == nil && value == "" && number < r.form.firstEmpty {
		wrong(name, "it is empty: give it a value, or leave it out")
		return nil
	}
	if err == nil {
		if told := r.form.set(item, number, value); told != nil {
			wrong("", "%v", told)
		}
	}
	return err
}

// name parses a name in an object, and skips the colon and the white space after it. In the text of an error, what
// describes the name.
func (r *reader[T]) name(what string) (string, error) {
	r.space()
	name, err := r.string(what)
	if err == nil && !r.take(':') {
		err = r.fault("a colon should follow %s", what)
	}
	r.space()
	return name, err
}

// tags parses a JSON object that contains the names and values of tags.
func (r *reader[T]) tags(into *tag.Set, wrong func(field, format string, args ...any)) error {
	if !r.take('{') {
		wrong("tags", `they are not an object: write {"plan":"…"}`)
		return r.skip()
	}
	return r.list('}', "a comma or } should follow the value", func() error {
		name, err := r.name("the name of a tag")
		if err != nil {
			return err
		}
		if r.at == r.end || r.text[r.at] != '"' {
			wrong("tags", "%.64q is not a string: write it in double quotes", name)
			return r.skip()
		}
		value, err := r.string("")
		if told := into.Give(name, value); told != nil {
			wrong("", "%v", told)
		}
		return err
	})
}

// string parses a JSON string. If no string begins at r.at, what describes the missing string in the error's text.
func (r *reader[T]) string(what string) (string, error) {
	if r.at == r.end || r.text[r.at] != '"' {
		return "", r.fault("%s should begin here in double quotes", what)
	}
	escaped := false
	for at := r.at + 1; at < r.end; at++ {
		switch c := r.text[at]; {
		case c == '"':
			raw := r.text[r.at : at+1]
			if !escaped {
				r.at = at + 1
				return raw[1 : len(raw)-1], nil
			}
			var value string
			if json.Unmarshal([]byte(raw), &value) != nil {
				return "", r.fault(`this string has a \ that does not begin a JSON escape`)
			}
			r.at = at + 1
			return value, nil
		case c == '\\':
			escaped = true
			at++
		case c < ' ':
			r.at = at
			return "", r.fault(`a string has a control character here: write it as \u%04x`, c)
		}
	}
	return "", r.fault("this string is not closed")
}

// skip skips a JSON value of any type. It returns an error if the value's syntax is invalid.
func (r *reader[T]) skip() error {
	r.space()
	d := json.NewDecoder(strings.NewReader(r.text[r.at:r.end]))
	var value json.RawMessage
	err := d.Decode(&value)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		r.at = min(r.at+max(int(syntax.Offset)-1, 0), r.end)
		return r.fault("this is not JSON")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		r.at = r.end
		return r.fault("it is incomplete")
	}
	if err != nil {
		return r.fault("this is not JSON")
	}
	r.at += int(d.InputOffset())
	return nil
}

// take skips white space, and then the character c. If the next character is not c, take returns false.
func (r *reader[T]) take(c byte) bool {
	if r.space(); r.at == r.end || r.text[r.at] != c {
		return false
	}
	r.at++
	return true
}

func (r *reader[T]) space() {
	for r.at < r.end {
		switch r.text[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}
