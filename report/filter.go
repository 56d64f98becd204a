package report

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"

	"footfall/db"
	"footfall/visit"
)

// Unknown stands for a number that nobody knows: JSON and CSV leave it empty.
const Unknown = -1

// FiltersSince returns from which day of a range on visitors of a site can be asked for by conditions
// (0: on all of its days), and how many of these days were those of visitors who were erased, and are
// in no answer.
func (r *Reader) FiltersSince(ctx context.Context, l Look) (FiltersSinceRow, error) {
	return ask(ctx, r, "since when filters are known", (*Queries).FiltersSince, l)
}

// Ahead returns a Reader that has read what a page shows under a filter, in one pass over the rows:
// numbers, a chart, tags of some names, pages and events, each of them to N. It tells of FiltersSince, too:
// unless all is known of all days, nothing else was read.
func (r *Reader) Ahead(ctx context.Context, l Look) (*Reader, FiltersSinceRow, error) {
	l.Parts = words("numbers days tags pages events since")
	rows, err := ask(ctx, r, "visitors under a filter", (*Queries).FilterPanels, l)
	if err != nil {
		return nil, FiltersSinceRow{}, err
	}
	since := rows[len(rows)-1]
	return &Reader{r.db, r.counted, rows}, FiltersSinceRow{since.Day, since.Visitors}, nil
}

// AheadOfApp is Ahead for all sites of an app as one: numbers, a chart, and where tagged is true, tags of the
// names, if there are any. Where it is not known who came on all of the days, the error says why; the Reader knows page views
// then, and nothing else.
func (r *Reader) AheadOfApp(ctx context.Context, l Look) (_ *Reader, tagged bool, err error) {
	for _, parts := range []string{"numbers days tags events since", "numbers days events"} {
		if l.Parts = words(parts); len(l.Parts) > 3 && len(l.Names) == 0 {
			continue
		}
		var rows []FilterPanelsRow
		rows, err = ask(ctx, r, "visitors of an app", (*Queries).FilterPanels, l)
		if tagged = len(l.Parts) > 3; err == nil && (!tagged || rows[len(rows)-1].Day == 0) {
			return &Reader{r.db, r.counted, rows}, tagged, nil
		}
	}
	return &Reader{r.db, r.counted, []FilterPanelsRow{}}, false, err
}

// byRows reports whether visitors are found in rows of visits: those of a filter, and of all sites of an app as one.
func (l Look) byRows() bool { return len(l.Where) > 0 || l.Target == "" }

// blind reports whether the Reader has looked for visitors ahead, and it is not known who came.
func (r *Reader) blind() bool { return r.ahead != nil && len(r.ahead) == 0 }

// under is panelOf for what has been read ahead, where it has: of a part, each row as of makes it.
func under[Params, Row any](ctx context.Context, r *Reader, part, text string, query func(*Queries, context.Context, Params) ([]Row, error),
	l Look, of func(FilterPanelsRow) Row,
) (Panel[Row], error) {
	if r.ahead != nil {
		query = func(*Queries, context.Context, Params) (rows []Row, err error) {
			for _, row := range r.ahead {
				if row.Part == part {
					rows = append(rows, of(row))
				}
			}
			return rows, nil
		}
	}
	return panelOf(ctx, r, part+" under a filter", text, query, l)
}

// numbersWhere is Numbers under a filter.
func (r *Reader) numbersWhere(ctx context.Context, l Look) (Panel[Numbers], error) {
	some, err := under(ctx, r, "numbers", PanelNumbersWhere, (*Queries).PanelNumbersWhere, l, func(f FilterPanelsRow) PanelNumbersWhereRow {
		return PanelNumbersWhereRow{FirstDay: l.In.From, LastDay: l.In.To, Uniques: f.Visitors, NewVisitors: f.NewVisitors, Pv: f.Pv,
			Hot: Unknown, Exact: true}
	})
	return Panel[Numbers]{convert(some.Rows, func(n PanelNumbersWhereRow) Numbers { return Numbers(n) }), some.SQL}, err
}

// chartWhere is Chart under a filter. What was read ahead has no days on which nobody came, and no notes.
func (r *Reader) chartWhere(ctx context.Context, l Look) (Panel[Period], error) {
	query := (*Queries).PanelChartWhere
	if r.ahead != nil {
		query = func(q *Queries, ctx context.Context, _ PanelChartWhereParams) ([]PanelChartWhereRow, error) {
			came := map[int32]FilterPanelsRow{}
			for _, f := range r.ahead {
				if f.Part == "days" {
					came[f.Day] = f
				}
			}
			days, err := q.PanelChart(ctx, paramsOf[PanelChartParams](l))
			return convert(days, func(d PanelChartRow) PanelChartWhereRow {
				f := came[d.FirstDay]
				if d.Visitors, d.NewVisitors, d.Pv = f.Visitors, f.NewVisitors, f.Pv; len(l.Where) > 0 {
					d.Hot = Unknown
				}
				return PanelChartWhereRow(d)
			}), err
		}
	}
	some, err := panelOf(ctx, r, "chart under a filter", PanelChartWhere, query, l)
	return Panel[Period]{convert(some.Rows, func(p PanelChartWhereRow) Period { return Period(p) }), some.SQL}, err
}

// pagesWhere is TopPages under a filter.
func (r *Reader) pagesWhere(ctx context.Context, l Look) (Panel[Page], error) {
	some, err := under(ctx, r, "pages", PanelPagesWhere, (*Queries).PanelPagesWhere, l, func(f FilterPanelsRow) PanelPagesWhereRow {
		return PanelPagesWhereRow{Uri: f.Value, Uniques: f.Visitors, NewVisitors: f.NewVisitors, Pv: f.Pv, Hot: Unknown,
			UniquesCompared: f.Visitors, Title: f.Name}
	})
	return Panel[Page]{convert(some.Rows, func(p PanelPagesWhereRow) Page { return pageOf(PanelPagesRow(p)) }), some.SQL}, err
}

// TagsWhere reads the first N values of some tags with which those visitors came for whom conditions
// hold.
func (r *Reader) TagsWhere(ctx context.Context, l Look) (Panel[TagUnderFilter], error) {
	return under(ctx, r, "tags", PanelTagsWhere, (*Queries).PanelTagsWhere, l, func(f FilterPanelsRow) TagUnderFilter {
		return TagUnderFilter{f.Name, f.Value, f.Pv, f.NewVisitors}
	})
}

// uniquesWhere is UniquesOf for a site and conditions.
func (r *Reader) uniquesWhere(ctx context.Context, l Look) (Uniques, error) {
	p, err := r.Numbers(ctx, l)
	if err != nil {
		return Uniques{}, err
	}
	if p.Rows[0].Uniques == Unknown {
		return Uniques{}, visit.Errorf(visit.Invalid, "where", "of some of these days it is not kept who came: ask for later ones")
	}
	since, err := r.FiltersSince(ctx, l)
	return Uniques{Uniques: p.Rows[0].Uniques, Exact: true, Erased: since.Erased}, err
}

// CheckWhere returns an error unless all that a look asks for is known of what a filter selects.
func (l Look) CheckWhere() error {
	site := cmp.Or(l.Target, strings.Join(l.Targets, ",/"))
	switch {
	case len(l.Where) == 0:
	case site == "" || strings.Contains(site, "/") || l.Prefix != "":
		return visit.Errorf(visit.Invalid, "where", "filters are of the visitors of a site: give site, and a page as where=page:/home")
	case l.Before > 0:
		return visit.Errorf(visit.Invalid, "days_before", "nothing is compared under a filter: ask for the other days by themselves")
	case l.Find != "" || l.After != (Place{}) && l.After.Day == 0:
		return visit.Errorf(visit.Invalid, "where", "pages under a filter are a list that is told at once: leave find and after out")
	case l.By != "" && l.By != "pv":
		return visit.Errorf(visit.Invalid, "order", "pages under a filter are in order of pv alone")
	}
	return nil
}

// refused makes an error for callers of what a function of the schema says of the question, where it does.
func refused(err error) error {
	said := db.Refused(err)
	switch fault, is := strings.CutPrefix(said, "where: "); {
	case is:
		return visit.Errorf(visit.Invalid, "where", "%s", fault).Because(err)
	case said != "":
		return visit.Errorf(visit.Invalid, "", "%s", said).Because(err)
	}
	return err
}

// Told are the rows as JSON and CSV have them: with nothing in place of numbers that are not known.
func (a *Rows) Told() any {
	if len(a.Look.Where) == 0 && !slices.Contains([]string{"numbers", "chart", "pages"}, a.Name) {
		return a.List
	}
	return withoutUnknown(a.List)
}

// withoutUnknown makes structs whose numbers are pointers, nil where one is not known.
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
	made := reflect.MakeSlice(reflect.SliceOf(kind), of.Len(), of.Len())
	for i := range of.Len() {
		for at, f := range fields {
			from, to := of.Index(i).FieldByName(f.Name), made.Index(i).Field(at)
			switch {
			case f.Type.Kind() != reflect.Pointer:
				to.Set(from)
			case from.Int() != Unknown:
				to.Set(from.Addr())
			}
		}
	}
	return made.Interface()
}
