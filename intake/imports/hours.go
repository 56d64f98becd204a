package imports

import (
	"bytes"
	"strconv"
	"time"

	"footfall/intake/logs"
)

// hours tells which hour lines show, since 1970, by whatever clock they show. It is found without
// reading the whole line, and depends on nothing but the line: equal lines have equal hours.
type hours struct {
	text   [14]byte // of the line before, from where its day and hour are named
	hour   int32
	parser *logs.Parser
	line   logs.Line
}

func newHours() *hours { return &hours{parser: logs.NewParser("")} }

// of returns the hour of a line; false: it shows none.
func (h *hours) of(line []byte) (int32, bool) {
	if len(line) > 0 && line[0] == '{' {
		if hour, ok := h.ofJSON(line); ok {
			return hour, true
		}
	} else {
		for rest := line; ; {
			i := bytes.IndexByte(rest, '[')
			if i < 0 {
				break
			}
			rest = rest[i+1:]
			if hour, ok := h.shaped(rest, "02/Jan/2006:15"); ok {
				return hour, true
			}
		}
	}
	if h.parser.Parse(line, &h.line) != nil {
		return 0, false
	}
	return int32(h.line.Time.Unix() / 3600), true //nolint:gosec // some hundred thousand
}

// timeNames are what names begin with that JSON has for the time.
var timeNames = [][]byte{[]byte(`"ts"`), []byte(`"time`), []byte(`"msec"`), []byte(`"@timestamp"`), []byte(`"Start`)}

func (h *hours) ofJSON(line []byte) (int32, bool) {
	for _, name := range timeNames {
		i := bytes.Index(line, name)
		if i < 0 {
			continue
		}
		_, value, _ := bytes.Cut(line[i:], []byte(":"))
		value = bytes.TrimLeft(value, ` "`)
		for _, layout := range []string{"2006-01-02T15", "02/Jan/2006:15"} {
			if hour, ok := h.shaped(value, layout); ok {
				return hour, true
			}
		}
		if len(value) >= 10 && value[0] == '1' {
			if seconds, err := strconv.ParseInt(string(value[:10]), 10, 64); err == nil {
				return int32(seconds / 3600), true //nolint:gosec // likewise
			}
		}
	}
	return 0, false
}

// shaped returns the hour that is written at the beginning of a text.
func (h *hours) shaped(text []byte, layout string) (int32, bool) {
	if len(text) < len(layout) {
		return 0, false
	}
	text = text[:len(layout)]
	if bytes.Equal(text, h.text[:len(text)]) { // as nearly always
		return h.hour, true
	}
	at, err := time.Parse(layout, string(text))
	if err != nil {
		return 0, false
	}
	copy(h.text[:], text)
	h.hour = int32(at.Unix() / 3600) //nolint:gosec // likewise
	return h.hour, true
}
