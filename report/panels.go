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

// Rows of the queries in queries/report/panels.sql and report.sql.
type (
	// AppToday is the summary of an app. Today and Last30Days are page views of the 200 busiest sites. FirstDay is the first
	// day on which one of these sites was counted, or 0.
	AppToday = PanelAppsRow
	// SiteBetween holds a site's numbers in a range of days. Today and Last30Days are numbers of visitors. UniquesCompared is
	// the number of visitors in the compared days, or in the whole range if no days are compared. FirstDay is 0 if no day was
	// counted.
	SiteBetween = PanelSitesRow
	// Numbers are the numbers of a page or site in a range of days.
	Numbers = PanelNumbersRow
	// Totals are the all-time numbers of a page or site, and the part of them that was counted here.
	Totals = PanelTotalsRow
	// Period holds the numbers of a page or site in a day, a week or a month. VisitorsBefore is valid only if Compared is
	// true. Each of the Notes starts with its day: 2019-06-29 A new version.
	Period = PanelChartRow
	// Returned is how often visitors returned FromDays to ToDays days after their previous visit. ToDays is OrMore if there is
	// no upper limit.
	Returned = PanelReturnsRow
	// FirstVisit has the rank of a visitor, and the day of this visitor's first visit. FirstDay is 0 if the visitor was
	// erased or forgotten.
	FirstVisit = PanelFirstVisitsRow
	// VisitorOfDay is a visitor of a page or site on a day. PreviousDay is the last day before this one on which the visitor was
	// there; 0: none, or unknown.
	VisitorOfDay = PanelWhoCameRow
	// TagValue is the number of visitors of a page or site who have a value of a tag. PvCompared is the number for the
	// compared days, or for the whole range if no days are compared. Since is the first day on which the site has tags, or 0.
	TagValue = PanelTagsRow
	// TagName is the name of a tag that an app counts or has values for.
	TagName = TagNamesRow
	// TagPage is a page with the number of its visitors who had a value of a tag. On each day, a visitor has the tags of the
	// day's first visit to the page.
	TagPage = PanelTagPagesRow
)

// OrMore is the value of Returned.ToDays if there is no upper limit.
const OrMore = 99_999

// AppsToday reads the summaries of apps.
func (r *Reader) AppsToday(ctx context.Context, apps []string) (Panel[AppToday], error) {
	return panelOf(ctx, r, "apps", PanelApps, (*Queries).PanelApps, Look{Targets: apps})
}

// SitesBetween reads the sites of an app in a range, at most DeepestTop.
func (r *Reader) SitesBetween(ctx context.Context, l Look) (Panel[SiteBetween], error) {
	return panelOf(ctx, r, "sites", PanelSites, (*Queries).PanelSites, l)
}

// Numbers reads the numbers of a page or site in a range, in one row. If days are compared, more rows follow: the numbers of
// the compared days, and the numbers of the earlier days. If the compared days are the whole range, they have no row of their
// own.
func (r *Reader) Numbers(ctx context.Context, l Look) (Panel[Numbers], error) {
	if l.byRows() {
		return r.numbersWhere(ctx, l)
	}
	return panelOf(ctx, r, "numbers", PanelNumbers, (*Queries).PanelNumbers, l)
}

// Chart reads the numbers of a page or site by day, week or month.
func (r *Reader) Chart(ctx context.Context, l Look) (Panel[Period], error) {
	if l.byRows() && (l.Filtered == nil || slices.Contains(l.Filtered.parts, "days")) {
		return r.chartWhere(ctx, l)
	}
	return panelOf(ctx, r, "chart", PanelChart, (*Queries).PanelChart, l)
}

// PagesVisited returns the number of pages of a site that TopPages would list without a limit, but at most l.N.
func (r *Reader) PagesVisited(ctx context.Context, l Look) (int64, error) {
	return runQuery(ctx, r, "the number of visited pages", (*Queries).PagesVisited, l)
}

// ReturnedAfter reads how often visitors of a page or site returned in a range, by the number of days since their previous
// visit.
func (r *Reader) ReturnedAfter(ctx context.Context, l Look) (Panel[Returned], error) {
	return panelOf(ctx, r, "returns", PanelReturns, (*Queries).PanelReturns, l)
}

// FirstVisits reads the first visits of a page's or site's latest visitors, and of its latest visitors with a round rank, such
// as 100.
func (r *Reader) FirstVisits(ctx context.Context, l Look) (Panel[FirstVisit], error) {
	return panelOf(ctx, r, "first visits", PanelFirstVisits, (*Queries).PanelFirstVisits, l)
}

// WhoCame reads the visitors of a page or site on each day of a range: up to l.N rows, the last day first, starting after
// l.After.
func (r *Reader) WhoCame(ctx context.Context, l Look) (Panel[VisitorOfDay], error) {
	return panelOf(ctx, r, "visitors by day", PanelWhoCame, (*Queries).PanelWhoCame, l)
}

// TagNames reads the names of tags that an app counts or has values for.
func (r *Reader) TagNames(ctx context.Context, app string) ([]TagName, error) {
	return runQuery(ctx, r, "names of tags", (*Queries).TagNames, Look{App: app})
}

// TitleOf returns the title of a page, or "" if it is unknown.
func (r *Reader) TitleOf(ctx context.Context, app, page string) (string, error) {
	return runQuery(ctx, r, "the title of a page", (*Queries).TitleOf, Look{App: app, Target: page})
}

// TagPages reads the pages of a site that were visited with the value l.Value of a tag in a range.
func (r *Reader) TagPages(ctx context.Context, l Look) (Panel[TagPage], error) {
	return panelOf(ctx, r, "pages by tag", PanelTagPages, (*Queries).PanelTagPages, l)
}

// panelOf runs a generated query. p.SQL is the same query for psql. It has values instead of parameters, starts with the first
// row instead of after l.After, and reads up to DeepestTop rows.
func panelOf[Params, Row any](ctx context.Context, r *Reader, what, text string,
	query func(*Queries, context.Context, Params) ([]Row, error), l Look,
) (p Panel[Row], err error) {
	rows, err := runQuery(ctx, r, what, query, l)
	p.Rows = append([]Row{}, rows...) // an empty list in JSON instead of null
	l.N, l.After = 0, Cursor{}
	p.SQL = statementOf(text, paramsOf[Params](l))
	return p, err
}

const firstVisits = 4

// paramsOf fills the parameters of a generated query, by name, from a Look.
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

// Panel holds the rows of an SQL statement, and the statement with its values. Every database user with access to the schema
// report can run it.
type Panel[Row any] struct {
	Rows []Row
	SQL  string
}

var (
	nameLine  = regexp.MustCompile(`^-- name: .*\n`)
	parameter = regexp.MustCompile(`\$[0-9]+`)
)

// statementOf replaces the parameters of a generated query by their values. If the query has one parameter, argument is its
// value. Otherwise argument is a struct, whose fields are the values in order.
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
		_, _ = fmt.Sscanf(p, "$%d", &n) // the expression matches only digits after $
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
	return fmt.Sprint(value) // the value is a number
}
