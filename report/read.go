// Package report reads the counted numbers and writes them as text, JSON, CSV and drawings.
package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"footfall/db"
	"footfall/visit"
)

// Reader reads the counted numbers. All-time totals and ranks include offsets (numbers counted by another tool), as in the
// API. A Reader is safe for concurrent use.
type Reader struct {
	db      *db.DB
	counted bool // leave out offsets
}

// NewReader returns a Reader for a database.
func NewReader(d *db.DB) *Reader { return &Reader{db: d} }

// Counted returns a Reader that leaves out offsets.
func (r *Reader) Counted() *Reader { return &Reader{db: r.db, counted: true} }

// Totals reads the all-time numbers of a page or site in one row. If it was never counted, there is no row.
func (r *Reader) Totals(ctx context.Context, l Look) (Panel[Totals], error) {
	p, err := panelOf(ctx, r, "totals", PanelTotals, (*Queries).PanelTotals, l)
	for i, t := range p.Rows {
		if r.counted {
			p.Rows[i].Pv, p.Rows[i].Uv, p.Rows[i].Hot = t.CountedPv, t.CountedUv, t.CountedHot
		}
	}
	return p, err
}

// ranksBefore returns the number of visitors that another tool has counted for a page or site. Reports add this number to the
// ranks of visitors.
func (r *Reader) ranksBefore(ctx context.Context, l Look) (int64, error) {
	totals, err := r.Totals(ctx, l)
	if err != nil || len(totals.Rows) == 0 {
		return 0, err
	}
	return totals.Rows[0].Uv - totals.Rows[0].CountedUv, nil
}

// ErrNoVisitor is returned if a page or site has no visitor with the requested rank or address.
var ErrNoVisitor = errors.New("there is no such visitor")

// ErrVisitorElsewhere is returned if another tool has counted the visitor with the requested rank. It wraps ErrNoVisitor.
var ErrVisitorElsewhere = fmt.Errorf("this visitor was counted elsewhere: %w", ErrNoVisitor)

// Site is a site with its totals.
type Site struct {
	Site  string    `json:"site"`
	PV    int64     `json:"pv"`
	UV    int64     `json:"uv"`
	Hot   int64     `json:"hot"`
	Since time.Time `json:"since"`
	Shown string    `json:"shown"` // the site as shown to people
}

// Sites returns n sites of an app in order of name. It starts after the site with the name after, or with the first site if
// after is "".
func (r *Reader) Sites(ctx context.Context, app, after string, n int) ([]Site, error) {
	rows, err := runQuery(ctx, r, "sites", (*Queries).SitesAfter, Look{App: app, After: Cursor{Name: after}, N: n})
	return convert(rows, func(s SitesAfterRow) Site {
		if r.counted {
			s.Pv, s.Uv, s.Hot = s.CountedPv, s.CountedUv, s.CountedHot
		}
		return Site{Site: s.Site, PV: s.Pv, UV: s.Uv, Hot: s.Hot, Since: s.Since, Shown: visit.Shown(s.Site)}
	}), err
}

// FirstPage returns the page that an app counted first, or nil. If the app has more than 1,000 pages, FirstPage only looks at
// any 1,000 of them.
func (r *Reader) FirstPage(ctx context.Context, app string) (*PageFirstRow, error) {
	rows, err := runQuery(ctx, r, "the first page", (*Queries).PageFirst, Look{App: app})
	if len(rows) == 0 {
		return nil, err
	}
	return &rows[0], err
}

// LastVerified returns the time of the last complete and successful verification, or zero.
func (r *Reader) LastVerified(ctx context.Context) (at time.Time, err error) {
	err = r.db.Read(ctx, func(q *db.Queries) error {
		seconds, err := q.ProofLast(ctx)
		if seconds > 0 {
			at = time.Unix(seconds, 0).UTC()
		}
		return err
	})
	return at, err
}

// runQuery runs a generated query with parameters from l. what describes the data that the query reads, for error messages.
func runQuery[Params, Answer any](ctx context.Context, r *Reader, what string,
	query func(*Queries, context.Context, Params) (Answer, error), l Look,
) (answer Answer, err error) {
	err = r.db.Report(ctx, func(tx db.Tx) error {
		answer, err = query(New(tx), ctx, paramsOf[Params](l))
		return err
	})
	if db.ReadsTooManyRows(err) {
		err = visit.Errorf(visit.Invalid, "", "more than 100,000 pages, or 1,000,000 of their visits, would have to be read: "+
			"choose fewer days, fewer pages, or a whole site").Because(err)
	}
	if err = translateRefusal(err); err != nil {
		err = fmt.Errorf("read %s: %w", what, err)
	}
	return answer, err
}

// translateRefusal translates the error of a database function that refused its arguments. It returns other errors unchanged.
// Functions that the dashboard calls put the name of the wrong field, the text of the error, and the values in this text into
// the error's DETAIL. The database server logs DETAIL, so it never contains a visitor.
func translateRefusal(err error) error {
	message, detail, is := db.Refused(err)
	if !is {
		return err
	}
	refused := visit.Errorf(visit.Invalid, "", "%s", message).Because(err)
	var said struct {
		Field, Text string
		Values      []string
	}
	if json.Unmarshal([]byte(detail), &said) == nil && said.Text != "" {
		refused.Field, refused.Text = said.Field, visit.Text{Format: said.Text}
		for _, value := range said.Values {
			refused.Text.Values = append(refused.Text.Values, value)
		}
	}
	return refused
}

func convert[From, To any](rows []From, f func(From) To) []To {
	converted := make([]To, len(rows))
	for i, row := range rows {
		converted[i] = f(row)
	}
	return converted
}
