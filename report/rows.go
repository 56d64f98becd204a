package report

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"footfall/visit"
)

// Rows are a report's result: a list of structs, whose fields are the columns.
type Rows struct {
	Look Look
	Name string // name of the JSON member that contains List
	List any
	One  bool   // JSON contains the only row instead of a list
	Of   any    // a struct with more members for JSON, or nil
	Next string // cursor of the next page of results; "": none
	// Follow is the Look for the next rows. It is nil unless the caller requested all rows and one query could not read them.
	Follow *Look
}

// panel makes the Read function of a Report. read is a method of Reader that reads the rows.
func panel[Row any](
	name string, read func(*Reader, context.Context, Look) (Panel[Row], error),
) func(context.Context, *Reader, Look) (*Rows, error) {
	return func(ctx context.Context, from *Reader, l Look) (*Rows, error) {
		p, err := read(from, ctx, l)
		return &Rows{Look: l, Name: name, List: p.Rows}, err
	}
}

// listing returns the first l.N rows. If there are more rows, and after is not nil, it sets Next to the result of after for
// the last returned row.
func listing[Row any](l Look, name string, rows []Row, after func(Row) string) *Rows {
	if rows == nil {
		rows = []Row{} // an empty list in JSON instead of null
	}
	result := &Rows{Look: l, Name: name, List: rows}
	if l.N > 0 && len(rows) > l.N {
		result.List = rows[:l.N]
		if after != nil {
			result.Next = after(rows[l.N-1])
		}
	}
	return result
}

func readSites(ctx context.Context, from *Reader, l Look) (*Rows, error) {
	sites, err := from.Sites(ctx, l.App, l.After.Name, l.N+1)
	return listing(l, "sites", sites, func(s Site) string { return s.Site }), err
}

func parseNameCursor(text string, l *Look) bool {
	l.After.Name = text
	return true
}

func parsePageCursor(text string, l *Look) bool {
	if l.By == "uri" {
		return parseNameCursor(text, l)
	}
	at := &l.After
	read, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		_, err = fmt.Sscanf(string(read), l.By+" %d %d %d", &at.Before, &at.Number, &at.PageID)
	}
	return err == nil && at.encode(l.By) == text && at.Before >= 1 && at.Before <= DeepestTop
}

// encode encodes a place in a list of top pages as text for Rows.Next. by is the number by which the list is sorted. The text
// is valid only for lists that are sorted by this number.
func (at Cursor) encode(by string) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s %d %d %d", by, at.Before, at.Number, at.PageID))
}

// readPages reads pages in descending order of pv, uv or hot, or in order of URI. Without a limit it returns all pages. If one
// query cannot read them all, they are in order of URI, because numbers change between queries.
func readPages(ctx context.Context, from *Reader, l Look) (*Rows, error) {
	switch {
	case len(l.Where) > 0:
		pages, err := from.TopPages(ctx, l)
		return withoutComparison(listing(l, "pages", pages.Rows, nil)), err
	case l.N > 0 && l.By == "uri":
		pages, err := from.PagesAfter(ctx, l, l.N+1)
		return withoutComparison(listing(l, "pages", pages, func(p Page) string { return p.URI })), err
	case l.N > 0 && l.Find == "":
		pages, next, err := from.TopPagesAfter(ctx, l)
		result := listing(l, "pages", pages, nil)
		if next != nil {
			result.Next = next.encode(l.By)
		}
		return withoutComparison(result), err
	case l.N > 0:
		found, err := from.FindPages(ctx, l)
		return withoutComparison(listing(l, "pages", found.Rows, nil)), err
	}
	if l.After.Name == "" && l.By != "uri" {
		read := (*Reader).FindPages
		if l.Find == "" {
			read = (*Reader).TopPages
		}
		top, err := read(from, ctx, l)
		if err != nil || len(top.Rows) < DeepestTop {
			return withoutComparison(listing(l, "pages", top.Rows, nil)), err
		}
	}
	pages, err := from.PagesAfter(ctx, l, DeepestTop)
	result := &Rows{Look: l, Name: "pages", List: pages}
	if len(pages) == DeepestTop {
		follow := l
		follow.After.Name = pages[len(pages)-1].URI
		result.Follow = &follow
	}
	if l.Find == "" && l.By != "uri" { // leave out unvisited pages, as the list of top pages above does
		result.List = slices.DeleteFunc(pages, func(p Page) bool { return p.number(l.By) == 0 })
	}
	return withoutComparison(result), err
}

// withoutComparison removes the columns about compared days if no days are compared.
func withoutComparison(result *Rows) *Rows {
	if result.Look.Before == 0 {
		result.List = convert(result.List.([]Page), func(p Page) TitledPage { return TitledPage{p.PageBetween, p.Title} })
	}
	return result
}

func readDays(ctx context.Context, from *Reader, l Look) (*Rows, error) {
	asked := rangeMembers{From: l.In.From, To: l.In.To}
	if l.N == 0 {
		l.N = mostDays
	}
	if l.In.To == visit.AllDays.To {
		asked.To = 0
	}
	if l.After.Day > 0 {
		l.In.From = max(l.In.From, l.After.Day+1)
	}
	days, err := from.DaysWhere(ctx, l)
	if err != nil || !l.History {
		result := listing(l, "days", days, func(d Day) string { return strconv.Itoa(int(d.Day)) })
		result.Of = asked
		return result, err
	}
	more := l
	more.N++
	told, err := from.ImportedDays(ctx, more)
	result := listing(l, "days", mergeHistory(days, told), func(d HistoryDay) string { return strconv.Itoa(int(d.Day)) })
	result.List, result.Of = withoutUnknown(result.List), asked
	return result, err
}

type rangeMembers struct {
	From int32 `json:"from,omitempty"`
	To   int32 `json:"to,omitempty"`
}

func parseDayCursor(text string, l *Look) bool {
	day, err := visit.ParseDay(text, l.Today)
	l.After.Day = day
	return err == nil
}

// parseVisitorCursor parses a cursor that consists of a day and a visitor. The cursor contains the day, so that a list of
// today's visitors stays on the same day if midnight passes between two requests.
func parseVisitorCursor(text string, l *Look) bool {
	began, address, _ := strings.Cut(text, "-")
	day, wrongDay := visit.ParseDay(began, l.Today)
	visitor, err := netip.ParseAddr(address)
	if wrongDay != nil || err != nil || visitor.Zone() != "" || text != afterVisitor(day, visitor) || l.Day != 0 && l.Day != day {
		return false
	}
	l.Day, l.After.Day, l.After.Visitor = day, day, visitor
	return true
}

func afterVisitor(day int32, visitor netip.Addr) string {
	return strconv.Itoa(int(day)) + "-" + visitor.String()
}

func readVisitors(ctx context.Context, from *Reader, l Look) (*Rows, error) {
	came, err := from.CountVisitors(ctx, l.App, l.Target, l.Day)
	if err != nil {
		return nil, err
	}
	result := listing(l, "visitors", []DayVisitor{}, nil)
	if came.PV > 0 {
		visitors, err := from.Visitors(ctx, l)
		if err != nil {
			return nil, err
		}
		result = listing(l, "visitors", visitors, func(v DayVisitor) string { return afterVisitor(l.Day, v.Visitor) })
	}
	result.Of = came
	return result, nil
}

func readRanks(ctx context.Context, from *Reader, l Look) (*Rows, error) {
	found, err := from.Ranked(ctx, l)
	ranks := []Ranked{found}
	if errors.Is(err, ErrNoVisitor) {
		ranks, err = nil, nil
	}
	return listing(l, "ranks", ranks, nil), err
}

func readUniques(ctx context.Context, from *Reader, l Look) (*Rows, error) {
	u, err := from.UniquesOf(ctx, l)
	return &Rows{Look: l, Name: "uniques", List: []Uniques{u}, One: true}, err
}

func readTags(ctx context.Context, from *Reader, l Look) (*Rows, error) {
	read, err := from.ByTag(ctx, l)
	result := &Rows{Look: l, Name: "tags", List: read.Rows}
	of := tagMembers{Name: l.Name}
	for _, v := range read.Rows {
		of.Since = v.Since
	}
	if result.Of = of; l.Before == 0 {
		result.List = convert(read.Rows, func(v TagValue) Tag { return Tag{v.Value, v.Pv, v.Newcomers} })
	}
	return result, err
}

type tagMembers struct {
	Name  string `json:"name"`
	Since int32  `json:"since,omitempty"`
}

func readChart(ctx context.Context, from *Reader, l Look) (*Rows, error) {
	if l.In.To > l.Today && l.Today > 0 { // otherwise each future day would get a row
		l.In.To = l.Today
	}
	return panel("chart", (*Reader).Chart)(ctx, from, l)
}

// readGoals reads at most l.N rows of goals, or all rows if l.N is 0. It fails if there are more than DeepestTop rows, because
// a user would not notice that the last goals are missing.
func readGoals(ctx context.Context, from *Reader, l Look) (*Rows, error) {
	asked := l
	if l.N == 0 {
		asked.N = DeepestTop + 1
	}
	read, err := from.Goals(ctx, asked)
	if len(read.Rows) > DeepestTop {
		return nil, visit.Errorf(visit.Invalid, "by", "there are more than 10,000 rows: choose fewer days, or one goal")
	}
	return &Rows{Look: l, Name: "goals", List: read.Rows}, err
}

func readWhoCame(ctx context.Context, from *Reader, l Look) (*Rows, error) {
	part := l
	if part.N > 0 {
		part.N++
	}
	came, err := from.WhoCame(ctx, part)
	result := listing(l, "visitors", came.Rows, func(c VisitorOfDay) string { return afterVisitor(c.Day, c.Visitor) })
	if l.N == 0 && len(came.Rows) == DeepestTop {
		last := came.Rows[len(came.Rows)-1]
		part.After.Day, part.After.Visitor = last.Day, last.Visitor
		result.Follow = &part
	}
	return result, err
}
