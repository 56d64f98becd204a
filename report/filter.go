package report

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"footfall/visit"
)

// Unknown represents an unknown number. JSON output has null instead, and CSV an empty field.
const Unknown = -1

// Filtered holds the parts of a report that one SQL statement has read. The report is about the visitors of a site who match a
// filter, or about all sites of an app together.
type Filtered struct {
	Since  int32 // from this day of the range on, the tags of all visitors are recorded; 0: they are recorded on all its days
	Erased int64 // number of (visitor, day) pairs of erased visitors, who are not included in any other number

	parts []string
	rows  []FilterPanelsRow
}

// Filter reads the named parts of a report. The parts are numbers, days (by l.Period), tags (with names in l.Names), pages,
// events, and since. Tags, pages and events have up to l.N rows. The part since sets the fields Since and Erased. If since is
// requested and the field Since is not 0, the other parts are not read.
func (r *Reader) Filter(ctx context.Context, l Look, parts ...string) (*Filtered, error) {
	l.Parts = parts
	rows, err := runQuery(ctx, r, "filtered visitors", (*Queries).FilterPanels, l)
	read := &Filtered{parts: parts, rows: rows}
	if last := len(rows) - 1; last >= 0 && rows[last].Part == "since" {
		read.Since, read.Erased = rows[last].Day, rows[last].Visitors
	}
	return read, err
}

// byRows reports whether numbers are computed from rows of visits instead of daily sums. This is the case if there is a
// filter, and for all sites of an app together.
func (l Look) byRows() bool { return len(l.Where) > 0 || l.Target == "" }

// filtered returns the rows of one part of a filtered report, from l.Filtered or from the database.
func (r *Reader) filtered(ctx context.Context, l Look, part string) (rows []FilterPanelsRow, err error) {
	read := l.Filtered
	if read == nil {
		if read, err = r.Filter(ctx, l, part); err != nil {
			return nil, err
		}
	}
	for _, row := range read.rows {
		if row.Part == part {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// call returns an SQL statement that users can run in psql to read the same numbers. It calls a function in the schema report.
func (l Look) call(function string, values ...any) string {
	return "SELECT * FROM report." + function + "(" + strings.Join(convert(values, literal), ", ") + ");"
}

// conditions returns the filter's conditions as an SQL array, for call.
func (l Look) conditions() any {
	if len(l.Where) == 0 {
		return "{}" // PostgreSQL cannot determine the type of an empty ARRAY[]
	}
	return convert(l.Where, visit.StoredCondition)
}

// numbersWhere implements Numbers for a report with a filter, or about all sites of an app together.
func (r *Reader) numbersWhere(ctx context.Context, l Look) (p Panel[Numbers], err error) {
	rows, err := r.filtered(ctx, l, "numbers")
	p.SQL = l.call("numbers_where", l.App, l.Target, l.In.From, l.In.To, l.conditions())
	p.Rows = convert(rows, func(f FilterPanelsRow) Numbers {
		return Numbers{FirstDay: l.In.From, LastDay: l.In.To, Uniques: f.Visitors, NewVisitors: f.NewVisitors, Pv: f.Pv, Hot: Unknown,
			Exact: true}
	})
	if err != nil || l.Filtered != nil || len(rows) == 0 {
		return p, err
	}
	first := int32(0)
	if l.Target != "" {
		first, err = r.FirstDay(ctx, l.App, l.Target)
	} else {
		first, p.Rows[0].Hot, err = r.viewsOfApp(ctx, l)
	}
	p.Rows[0].FirstDay = cmp.Or(l.In.From, first)
	return p, err
}

// viewsOfApp returns the number of page views of all sites of an app in a range. first is the first day of the range. If
// l.In.From is 0, first is the first day on which a site was counted.
func (r *Reader) viewsOfApp(ctx context.Context, l Look) (first int32, hot int64, err error) {
	l.Period, l.In.To = string(monthly), min(l.In.To, visit.DayOf(r.db.Now().AddDate(0, 0, 1), time.UTC))
	months, err := runQuery(ctx, r, "page views", (*Queries).PanelChart, l)
	if hot = Unknown; len(months) == 0 {
		return 0, hot, err
	}
	for _, m := range months {
		if m.Hot != Unknown {
			hot = max(hot, 0) + m.Hot
		}
	}
	return months[0].FirstDay, hot, err
}

// chartWhere implements Chart for a report with a filter, or about all sites of an app together.
func (r *Reader) chartWhere(ctx context.Context, l Look) (p Panel[Period], err error) {
	days, err := r.filtered(ctx, l, "days")
	if err != nil {
		return p, err
	}
	came := map[int32]FilterPanelsRow{}
	for _, f := range days {
		came[f.Day] = f
	}
	p, err = panelOf(ctx, r, "filtered chart", PanelChart, (*Queries).PanelChart, l)
	p.SQL = l.call("days_where", l.App, l.Target, l.In.From, l.In.To, l.conditions(), l.Period)
	for i := range p.Rows {
		row := &p.Rows[i]
		if row.Hot != Unknown {
			f := came[row.FirstDay]
			row.Visitors, row.NewVisitors, row.Pv = f.Visitors, f.NewVisitors, f.Pv
		}
		if len(l.Where) > 0 {
			row.Hot = Unknown
		}
	}
	return p, err
}

// pagesWhere implements TopPages for a report with a filter.
func (r *Reader) pagesWhere(ctx context.Context, l Look) (Panel[Page], error) {
	rows, err := r.filtered(ctx, l, "pages")
	return Panel[Page]{convert(rows, func(f FilterPanelsRow) Page {
		numbers := PageBetween{f.Value, f.Pv, f.NewVisitors, f.Visitors, Unknown, visit.Shown(f.Value)}
		return Page{PageBetween: numbers, UniquesCompared: f.Visitors, Title: f.Name}
	}), l.call("pages_where", l.App, l.Target, l.In.From, l.In.To, l.conditions(), DeepestTop)}, err
}

// tagsWhere implements Tags for a report with a filter, or about all sites of an app together.
func (r *Reader) tagsWhere(ctx context.Context, l Look) (p Panel[TagValue], err error) {
	if l.Filtered == nil {
		l.Names = []string{l.Name}
	}
	rows, err := r.filtered(ctx, l, "tags")
	for _, f := range rows {
		if f.Name == l.Name {
			p.Rows = append(p.Rows, TagValue{Value: f.Value, Pv: f.Pv, Newcomers: f.NewVisitors, PvCompared: f.Pv, Since: l.In.From})
		}
	}
	p.SQL = l.call("tags_where", l.App, l.Target, []string{l.Name}, l.In.From, l.In.To, l.conditions(), DeepestTop)
	return p, err
}

// uniquesWhere implements UniquesOf for a site with a filter.
func (r *Reader) uniquesWhere(ctx context.Context, l Look) (Uniques, error) {
	read, err := r.Filter(ctx, l, "numbers", "since")
	// If Since is not 0, visits or their tags are missing for some days, and the part numbers was not read. Read it without
	// since, because daily sums may still exist if the filter is on a single tag.
	if err == nil && read.Since != 0 {
		read, err = r.Filter(ctx, l, "numbers")
	}
	if err != nil {
		return Uniques{}, err
	}
	if read.rows[0].Visitors == Unknown {
		return Uniques{}, visit.Errorf(visit.Invalid, "where", "visitors of some days are no longer on record: choose later days")
	}
	return Uniques{Uniques: read.rows[0].Visitors, Exact: true, Erased: read.Erased}, nil
}

// CheckWhere returns an error if l has a filter (l.Where) that cannot be combined with the other fields of l.
func (l Look) CheckWhere() error {
	site := cmp.Or(l.Target, strings.Join(l.Targets, ",/"))
	switch {
	case len(l.Where) == 0:
	case site == "" || strings.Contains(site, "/") || l.Prefix != "":
		return visit.Errorf(visit.Invalid, "where", "a filter needs one site: give it as site, and its page as a condition, where=page:/home")
	case l.Before > 0:
		return visit.Errorf(visit.Invalid, "days_before", "with a filter, days cannot be compared in one request: request the other days "+
			"separately")
	case l.Find != "" || l.After != (Cursor{}) && l.After.Day == 0:
		return visit.Errorf(visit.Invalid, "where", "with a filter, all pages are in one list: leave find and after out")
	case l.By != "" && l.By != "pv":
		return visit.Errorf(visit.Invalid, "order", "with a filter, pages can only be sorted by pv")
	}
	return nil
}

// JSONRows returns the rows for JSON and CSV, with nil instead of unknown numbers.
func (a *Rows) JSONRows() any {
	if len(a.Look.Where) == 0 && !slices.Contains([]string{"numbers", "chart", "pages"}, a.Name) {
		return a.List
	}
	return withoutUnknown(a.List)
}

// withoutUnknown converts a slice of structs. Fields of type int64 become pointers, which are nil if the number is
// Unknown.
func withoutUnknown(list any) any {
	of := reflect.ValueOf(list)
	var fields []reflect.StructField
	for _, f := range reflect.VisibleFields(of.Type().Elem()) {
		if !f.IsExported() || f.Anonymous {
			continue
		}
		if f.Index = nil; f.Type.Kind() == reflect.Int64 {
			f.Type = reflect.PointerTo(f.Type)
		}
		fields = append(fields, f)
	}
	kind := reflect.StructOf(fields)
	result := reflect.MakeSlice(reflect.SliceOf(kind), of.Len(), of.Len())
	for i := range of.Len() {
		for at, f := range fields {
			from, to := of.Index(i).FieldByName(f.Name), result.Index(i).Field(at)
			switch {
			case f.Type.Kind() != reflect.Pointer:
				to.Set(from)
			case from.Int() != Unknown:
				to.Set(from.Addr())
			}
		}
	}
	return result.Interface()
}
