package report

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"footfall/visit"
)

// The rows of panels. Their columns, by whose names they are written, stand in queries/report/panels.sql.
type (
	// AppToday is an app at a glance: Today is visits, FirstDay the first that was counted of a site;
	// 0: none was.
	AppToday = PanelAppsRow
	// SiteBetween is a site in a range of days. Today and Last30Days are visitors; UniquesCompared
	// those of the days that are compared, of the range where none are; FirstDay is 0 where none was
	// counted.
	SiteBetween = PanelSitesRow
	// Numbers are those of a target in a range of days.
	Numbers = PanelNumbersRow
	// Totals are what is shown of a target of all time, and how much of it was counted here.
	Totals = PanelTotalsRow
	// Period is a day, a week or a month of a target. It has VisitorsBefore where it is Compared, and
	// the notes of its days, each behind its day: 2019-06-29 A new version.
	Period = PanelChartRow
	// Returned is how often visitors came back after so many days; ToDays is OrMore without an end.
	Returned = PanelReturnsRow
	// FirstVisit is the first visit of a visitor, of whom nothing but the rank is told. FirstDay is 0
	// where the visitor was erased or forgotten.
	FirstVisit = PanelFirstVisitsRow
	// Came is a visitor of a target on a day. PreviousDay is the last one before; 0: none.
	Came = PanelWhoCameRow
	// TagValue is how many visitors of a target came with a value of a tag, PvCompared as
	// UniquesCompared of SiteBetween. Since is the first day on which the site has tags; 0: it has
	// none.
	TagValue = PanelTagsRow
	// TagName is a name of tags that an app counts, or has values of.
	TagName = TagNamesRow
	// TagPage is a page to which visitors came with a value.
	TagPage = PanelTagPagesRow
)

// OrMore is ToDays where there is no end.
const OrMore = 99_999

// AppsToday reads apps at a glance.
func (r *Reader) AppsToday(ctx context.Context, apps []string) (Panel[AppToday], error) {
	return panelOf(ctx, r, "apps", PanelApps, (*Queries).PanelApps, Look{Targets: apps})
}

// SitesBetween reads the sites of an app in a range, at most DeepestTop.
func (r *Reader) SitesBetween(ctx context.Context, l Look) (Panel[SiteBetween], error) {
	return panelOf(ctx, r, "sites", PanelSites, (*Queries).PanelSites, l)
}

// Numbers reads the numbers of a target in a range; below it those of the days that are compared,
// unless they are all, and those of the days before.
func (r *Reader) Numbers(ctx context.Context, l Look) (Panel[Numbers], error) {
	if l.byRows() {
		return r.numbersWhere(ctx, l)
	}
	return panelOf(ctx, r, "numbers", PanelNumbers, (*Queries).PanelNumbers, l)
}

// Chart reads a target by day, week or month.
func (r *Reader) Chart(ctx context.Context, l Look) (Panel[Period], error) {
	if l.byRows() && (l.Filtered == nil || slices.Contains(l.Filtered.parts, "days")) {
		return r.chartWhere(ctx, l)
	}
	return panelOf(ctx, r, "chart", PanelChart, (*Queries).PanelChart, l)
}

// PagesVisited is how many pages a site has that TopPages has some of; N, where they are more.
func (r *Reader) PagesVisited(ctx context.Context, l Look) (int64, error) {
	return ask(ctx, r, "how many pages were visited", (*Queries).PagesVisited, l)
}

// ReturnedAfter reads how often visitors of a target came back in a range, after how many days.
func (r *Reader) ReturnedAfter(ctx context.Context, l Look) (Panel[Returned], error) {
	return panelOf(ctx, r, "returns", PanelReturns, (*Queries).PanelReturns, l)
}

// FirstVisits reads when the latest few visitors of a target came first, and the latest few of those
// with a round number.
func (r *Reader) FirstVisits(ctx context.Context, l Look) (Panel[FirstVisit], error) {
	return panelOf(ctx, r, "first visits", PanelFirstVisits, (*Queries).PanelFirstVisits, l)
}

// WhoCame reads who came to a target on each day of a range, the last day first: N of them after a
// place.
func (r *Reader) WhoCame(ctx context.Context, l Look) (Panel[Came], error) {
	return panelOf(ctx, r, "who came", PanelWhoCame, (*Queries).PanelWhoCame, l)
}

// TagNames reads the names of tags that an app counts, or has values of.
func (r *Reader) TagNames(ctx context.Context, app string) ([]TagName, error) {
	return ask(ctx, r, "names of tags", (*Queries).TagNames, Look{App: app})
}

// TitleOf reads what a page calls itself; "": it is not known.
func (r *Reader) TitleOf(ctx context.Context, app, page string) (string, error) {
	return ask(ctx, r, "the title of a page", (*Queries).TitleOf, Look{App: app, Target: page})
}

// TagPages reads the pages of a site to which visitors came with a value of a tag in a range.
func (r *Reader) TagPages(ctx context.Context, l Look) (Panel[TagPage], error) {
	return panelOf(ctx, r, "pages by tag", PanelTagPages, (*Queries).PanelTagPages, l)
}

// panelOf runs a generated query. The statement begins with the first row, and has all of them, or
// DeepestTop.
func panelOf[Params, Row any](ctx context.Context, r *Reader, what, text string,
	query func(*Queries, context.Context, Params) ([]Row, error), l Look,
) (p Panel[Row], err error) {
	rows, err := ask(ctx, r, what, query, l)
	p.Rows = append([]Row{}, rows...) // in JSON, [] instead of null
	l.N, l.After = 0, Place{}
	p.SQL = statementOf(text, paramsOf[Params](l))
	return p, err
}

const firstVisits = 4

// paramsOf are the parameters of a generated query, by their names: what of a Look each one is.
func paramsOf[Params any](l Look) (p Params) {
	before, after := visit.Range{}, l.After.Name
	if l.Before > 0 {
		before = l.Compared.Earlier(l.Before)
	}
	if l.After.Visitor.IsValid() {
		after = l.After.Visitor.String()
	}
	values := map[string]any{
		"App": l.App, "Target": l.Target, "Site": l.Target, "Targets": append([]string{}, l.Targets...), "Prefix": l.Prefix,
		"FromDay": l.In.From, "ToDay": l.In.To, "DayID": l.Day, "DaysBefore": int32(l.Before), //nolint:gosec // at most a century
		"ComparedFrom": l.Compared.From, "ComparedTo": l.Compared.To, "BeforeFrom": before.From, "BeforeTo": before.To,
		"By": l.By, "Part": strings.ToLower(visit.StoredPart(l.Find)), "Find": l.Find, "NotesOfAll": !l.OfSite,
		"Period": cmp.Or(l.Period, string(daily)), "Name": l.Name, "Names": append([]string{}, l.Names...),
		"Conditions": convert(l.Where, visit.StoredCondition),
		"Goal":       visit.StoredCondition(l.Goal), "Split": l.Split, "Steps": convert(l.Steps, visit.StoredCondition),
		"Parts": append([]string{}, l.Parts...), "Value": l.Value, "Rank": l.Rank, "Stored": l.Stored, "AfterDay": l.After.Day, "After": after,
		"N": int32(cmp.Or(l.N, DeepestTop)), "Few": int32(firstVisits), //nolint:gosec // at most mostDays
	}
	of := reflect.ValueOf(&p).Elem()
	switch of.Kind() {
	case reflect.String:
		of.SetString(l.App)
	case reflect.Slice:
		of.Set(reflect.ValueOf(values["Targets"]))
	default:
		for i := range of.NumField() {
			of.Field(i).Set(reflect.ValueOf(values[of.Type().Field(i).Name]))
		}
	}
	return p
}

// Panel is the rows of a statement, and the statement with its values, as anybody may send it who
// reads the schema report.
type Panel[Row any] struct {
	Rows []Row
	SQL  string
}

var (
	nameLine  = regexp.MustCompile(`^-- name: .*\n`)
	parameter = regexp.MustCompile(`\$[0-9]+`)
)

// statementOf returns a generated query with its values in place of its parameters. The values are
// the one argument of its method, or the fields of it in order.
func statementOf(query string, argument any) string {
	var values []any
	if fields := reflect.ValueOf(argument); fields.Kind() == reflect.Struct {
		for i := range fields.NumField() {
			values = append(values, fields.Field(i).Interface())
		}
	} else {
		values = append(values, argument)
	}
	filled := parameter.ReplaceAllStringFunc(nameLine.ReplaceAllString(query, ""), func(p string) string {
		var n int
		_, _ = fmt.Sscanf(p, "$%d", &n) // which the expression has found
		return literal(values[n-1])
	})
	return strings.TrimSpace(filled) + ";"
}

func literal(value any) string {
	switch v := value.(type) {
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	case []string:
		return "ARRAY[" + strings.Join(convert(v, func(s string) string { return literal(s) }), ", ") + "]"
	}
	return fmt.Sprint(value) // a number
}
