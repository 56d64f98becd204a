package moves

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"footfall/admin"
	"footfall/visit"
)

// History imports numbers that another counter has exported. The fields up to MostLines are the input. The fields from
// Lines to Wrong are the results.
type History struct {
	Source string
	Files  []File
	Skip   bool // skip invalid lines, and import the others
	// MostBytes and MostLines limit the total size of the decompressed files, in bytes and in lines. 0: no limit.
	MostBytes, MostLines int64

	Lines   int64            // number of lines that were read
	LeftOut map[string]int64 // number of lines or tables left out, by reason; the text brought.left-REASON describes a reason
	Faults  []*visit.Error   // the errors of the first invalid lines, at most mostFaults
	Wrong   int64            // number of all invalid lines

	form form
	lean leanTotals

	unpacked, newlines int64
}

// Import imports the files into an app. Daily numbers become history, and totals become offsets.
func (h *History) Import(ctx context.Context, a *admin.Admin, into admin.History) (admin.HistoryResult, error) {
	into.Source = h.Source
	for _, f := range h.Files {
		into.Files = append(into.Files, f.Name)
	}
	known := slices.IndexFunc(forms, func(f form) bool { return f.source == h.Source })
	switch {
	case known >= 0:
		h.form = forms[known]
		into.AreParts = h.form.parts
		return a.ImportHistory(ctx, into, func(to *admin.HistoryTo) error { return h.read(ctx, to) })
	case !slices.Contains(totalSources, h.Source):
		return admin.HistoryResult{}, visit.Errorf(visit.Invalid, "from", "%.64q is not possible: write %s", h.Source,
			strings.Join(Sources(), ", "))
	case h.Source == fromLeanCloud:
		list, err := h.leanCloud(ctx, into.Site)
		return setOffsets(ctx, a, into, list, err)
	case len(h.Files) > 1 || into.Site != "" || h.Skip:
		return admin.HistoryResult{}, fault("%s has totals, which become offsets: give one file, and neither a site nor --skip", h.Source)
	}
	list, err := ReadCSV(&sizeLimitReader{h.Files[0].From, h})
	return setOffsets(ctx, a, into, list, err)
}

// setOffsets stores offsets in an app. If err is set, setOffsets stores nothing and returns err.
func setOffsets(ctx context.Context, a *admin.Admin, into admin.History, list []admin.Offset, err error,
) (done admin.HistoryResult, _ error) {
	if err != nil {
		return done, err
	}
	offsets, first, err := a.PutOffsets(ctx, into.App, list, into.DryRun)
	return admin.HistoryResult{Offsets: &offsets, Totals: first}, err
}

// mostFaults is the maximum length of History.Faults.
const mostFaults = 100

// read reads all files, and adds their numbers to an import (to). It collects the errors of invalid lines in h.Faults. If
// there are such lines, it returns an error, unless h.Skip is set.
func (h *History) read(ctx context.Context, to *admin.HistoryTo) error {
	h.Lines, h.LeftOut, h.Faults, h.Wrong, h.unpacked, h.newlines = 0, map[string]int64{}, nil, 0, 0, 0
	if err := h.checkDuplicates(); err != nil {
		return err
	}
	for i, f := range h.Files {
		for _, other := range h.Files[:i] {
			if other.Name == f.Name {
				return fault("%s: it is given twice", f.Name)
			}
		}
		if err := h.file(ctx, f, to); err != nil {
			return err
		}
	}
	switch {
	case h.Wrong > 0 && !h.Skip:
		return h.refused(visit.Errorf(visit.Invalid, "",
			"Nothing was imported. To import the rest, leave out lines that cannot be read (--skip)"))
	case h.Lines == h.Wrong:
		return fault("there is no line of numbers: is it an export of %s?", visit.CountedBy(h.Source))
	}
	return nil
}

// refused returns an error with several parts: h.Faults, the number of further faults, and last, a sentence about all of
// them.
func (h *History) refused(last *visit.Error) error {
	all := &visit.Error{Kind: visit.Invalid, Parts: slices.Clone(h.Faults)}
	if more := h.Wrong - int64(len(h.Faults)); more > 0 {
		all.Parts = append(all.Parts, visit.Errorf(visit.Invalid, "", "and %d more", more))
	}
	all.Parts = append(all.Parts, last)
	return all
}

// wrong records that a line is invalid, and returns nil, if err is a visit.Error. A line does not cause other errors, so
// wrong returns them.
func (h *History) wrong(file string, line int, column string, err error) error {
	of, ofLine := errors.AsType[*visit.Error](err)
	if !ofLine {
		return err
	}
	if h.Wrong++; len(h.Faults) == mostFaults {
		return nil
	}
	fault := visit.Errorf(visit.Invalid, "", "%s, line %d: %v", file, line, of)
	if column != "" {
		fault = visit.Errorf(visit.Invalid, "", "%s, line %d, column %s: %v", file, line, column, of)
	}
	h.Faults = append(h.Faults, fault)
	return nil
}

func (h *History) table(ctx context.Context, name string, from io.Reader, to *admin.HistoryTo) error {
	if h.Source == fromLeanCloud {
		return unreadFile(name, h.leanCloudLines(name, from))
	}
	text, err := decodeText(&sizeLimitReader{from, h})
	if err != nil {
		return fault("%s: %v", name, err)
	}
	bound := &lineLimitReader{from: text}
	r, comma := csv.NewReader(bound), separator(bound)
	r.Comma, r.LazyQuotes = comma, comma == '\t' // MySQL separates values by tabs, and does not quote them
	r.FieldsPerRecord, r.ReuseRecord, r.Comment = -1, true, '#'
	header, err := r.Read()
	if err != nil {
		return unreadTable(name, err)
	}
	places, err := h.findColumns(name, header)
	if places == nil || err != nil {
		return err
	}
	for {
		bound.used = 0
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return ctx.Err()
		}
		if err != nil {
			return unreadTable(name, err)
		}
		h.Lines++
		line, _ := r.FieldPos(0)
		if err := h.line(ctx, name, line, record, places, to); err != nil {
			return err
		}
	}
}

func unreadTable(name string, err error) error {
	var wrong *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return fault("%s: it is empty: its first line names the columns", name)
	case errors.As(err, &wrong):
		return fault("%s, line %d, character %d: it is not CSV: %v", name, wrong.Line, wrong.Column, wrong.Err)
	}
	return unreadFile(name, err)
}

// places contains the index of each column in a table, or -1 if the column is missing.
type places struct {
	wide                  int
	day, page, query      int
	host, visit, visitor  int
	numbers               [4]int
	kept                  []int
	isMoment, isOfSession bool
}

// findColumns finds the columns of h.form in the header of a table. It returns nil if the table must be left out, because
// another column divides its numbers into parts, such as countries.
func (h *History) findColumns(name string, header []string) (*places, error) {
	f := &h.form
	columns := make([]string, len(header))
	for i, column := range header {
		columns[i] = strings.ToLower(strings.TrimSpace(column))
	}
	find := func(names ...string) int {
		for _, name := range names {
			if i := slices.Index(columns, name); i >= 0 && name != "" {
				return i
			}
		}
		return -1
	}
	p := &places{wide: len(header), day: find(append(f.day, f.moment...)...), page: find(f.page...),
		query: find(f.query), host: find(f.host...),
		visit: find(f.visit), visitor: find(f.visitor), isMoment: f.moment != nil, isOfSession: f.visitor != ""}
	some := p.isOfSession
	for i, names := range f.numbers {
		p.numbers[i] = find(names...)
		some = some || p.numbers[i] >= 0
	}
	for _, k := range f.keep {
		p.kept = append(p.kept, find(k.column))
	}
	missing := ""
	switch {
	case p.page < 0 && find(f.splitColumns...) >= 0:
		h.LeftOut["tables"]++
		return nil, nil //nolint:nilnil // nil is documented
	case p.day < 0:
		missing = append(f.day, f.moment...)[0]
	case p.page < 0 && find(f.sites) < 0:
		missing = f.page[0]
	case !some:
		missing = f.numbers[0][0]
	default:
		return p, nil
	}
	return nil, fault("%s, line 1: column %s is missing: from %s, this can be read: %s", name, missing,
		visit.CountedBy(h.Source), h.form.export)
}

func (h *History) line(ctx context.Context, name string, line int, record []string, p *places, to *admin.HistoryTo) error {
	at := func(place int) string {
		if place < 0 || place >= len(record) {
			return ""
		}
		return strings.TrimSpace(record[place])
	}
	for i, k := range h.form.keep {
		if p.kept[i] >= 0 && !slices.Contains(k.values, at(p.kept[i])) {
			h.LeftOut[k.others]++
			return nil
		}
	}
	if h.Source == "ga4" && (at(p.day) == "" || at(p.page) == "(not set)" || at(p.page) == "(other)") {
		h.LeftOut["sums"]++
		return nil
	}
	if len(record) != p.wide && (len(record) > p.wide || !h.form.ragged) {
		return h.wrong(name, line, "", fault("it has %d columns, and the first line names %d", len(record), p.wide))
	}
	if h.Source != "csv" && p.page >= 0 && at(p.page) == "" {
		h.LeftOut["lines"]++
		return nil
	}
	for i, text := range record {
		if !utf8.ValidString(text) {
			return h.wrong(name, line, strconv.Itoa(i+1), fault("it is not UTF-8: save the file as UTF-8"))
		}
	}
	t := admin.HistoryLine{Host: at(p.host), Page: at(p.page), PageViews: 1, Visits: admin.Unknown, Visitors: admin.Unknown,
		New: admin.Unknown}
	if query := at(p.query); query != "" {
		t.Page += "?" + strings.TrimPrefix(query, "?")
	}
	var err error
	if p.isMoment {
		var moment time.Time
		moment, err = parseMoment(at(p.day))
		t.Day = to.Day(moment)
	} else {
		t.Day, err = parseDay(at(p.day))
	}
	if err != nil {
		return h.wrong(name, line, "day", err)
	}
	if p.isOfSession {
		t.ByVisit, t.ByVisitor = hash(at(p.visit)), hash(at(p.visitor))
	} else {
		for i, number := range []*int64{&t.PageViews, &t.Visits, &t.Visitors, &t.New} {
			if *number, err = parseNumber(at(p.numbers[i])); err != nil {
				return h.wrong(name, line, columnNames[i], err)
			}
		}
		if h.Source == "csv" && t.Visitors != admin.Unknown && t.New > t.Visitors {
			return h.wrong(name, line, columnNames[3], fault("%d is more than visitors, %d: new visitors are some of them", t.New, t.Visitors))
		}
	}
	if err := to.Add(ctx, &t); err != nil {
		return h.wrong(name, line, "", err)
	}
	return nil
}

func parseNumber(text string) (int64, error) {
	if text == "" {
		return admin.Unknown, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, fault("%.64q is not a number: write only digits, like 1204", text)
	}
	return int64(n), nil //nolint:gosec // at most 63 bits
}

func parseDay(text string) (int32, error) {
	for _, layout := range []string{time.DateOnly, "20060102"} {
		if date, err := time.Parse(layout, text); err == nil {
			return visit.DayOf(date, time.UTC), nil
		}
	}
	return 0, fault("%.64q is not a day: write year, month and day, like 2024-05-03, because 03/05/2024 may be either of two days", text)
}

// moments are the layouts of times in exports, for time.Parse. A time without a zone is in UTC.
var moments = []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z07", "2006-01-02 15:04:05 UTC", time.DateTime}

func parseMoment(text string) (time.Time, error) {
	for _, layout := range moments {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fault("%.64q is not a time: write one like 2024-05-03T12:00:00Z", text)
}

// hash returns 0 if text is empty. Otherwise it returns a hash of text, which is never 0.
func hash(text string) int64 {
	if text == "" {
		return 0
	}
	sum := sha256.Sum256([]byte(text))
	return int64(binary.LittleEndian.Uint64(sum[:])>>1) + 1 //nolint:gosec // at most 63 bits
}

// separator finds out which character separates the columns: a comma, a semicolon or a tab. It examines the first line that
// is neither empty nor a comment.
func separator(from *lineLimitReader) rune {
	begins, _ := from.from.Peek(peeked)
	for line := range bytes.Lines(begins) {
		if line[0] != '#' && len(bytes.TrimSpace(line)) > 0 {
			best := ','
			for _, r := range ";\t" {
				if bytes.Count(line, []byte(string(r))) > bytes.Count(line, []byte(string(best))) {
					best = r
				}
			}
			return best
		}
	}
	return ','
}

// Describe returns a text about the result of an import. say returns a text of package words in the user's language, with
// its placeholders replaced by places.
func (h *History) Describe(done *admin.HistoryResult, say func(key string, places ...any) string) string {
	if h.Lines == 0 {
		return describeOffsets(done.Offsets, say)
	}
	said := say("brought.read", "lines", h.Lines, "added", done.Added, "replaced", done.Replaced, "same", done.Same)
	first, last := visit.DayText(done.FirstDay), visit.DayText(done.LastDay)
	switch {
	case done.FirstDay == 0:
	case first == last:
		said = say("brought.of-day", "read", said, "first", first)
	default:
		said = say("brought.of-days", "read", said, "first", first, "last", last)
	}
	if done.Hidden > 0 {
		said += "\n" + say("brought.hidden", "days", done.Hidden)
	}
	for _, what := range slices.Sorted(maps.Keys(h.LeftOut)) {
		said += "\n" + say("brought.left-"+what, "number", h.LeftOut[what])
	}
	if h.Wrong > 0 {
		said += "\n" + say("brought.left-wrong", "number", h.Wrong)
	}
	if done.Offsets != nil {
		said += "\n" + describeOffsets(done.Offsets, say)
	}
	return said
}

func describeOffsets(o *admin.OffsetCounts, say func(key string, places ...any) string) string {
	return say("brought.offsets", "added", o.Added, "changed", o.Changed, "same", o.Same)
}
